"""Conan recipe of isotope's headers. It needs no remote: Boost comes from the system, as in cmake/dependencies.txt.

    conan create packaging/conan -s compiler.cppstd=20

The version is that of the sources (cmake/version.cmake) with `-` for `~`, which Conan orders alike. The option `backend` chooses what consumers' programs run
on; its device code is compiled here.
"""

import os
import re
import subprocess

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


class Isotope(ConanFile):
    name = "isotope"
    license = "Apache-2.0"
    description = "Transformers planned at compile time: one model source, many backends"
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"backend": ["ANY"], "precision": ["ANY"]}
    default_options = {"backend": "cpu", "precision": ""}

    def set_version(self):
        if self.version:
            return
        with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
            release = re.search(r"^ *VERSION ([0-9.]+)$", file.read(), re.M).group(1)
        script = os.path.join(ROOT, "cmake", "build_facts.cmake")
        self.version = subprocess.run(["cmake", "-DPRINT=ON", f"-DSOURCE={os.path.abspath(ROOT)}", f"-DVERSION={release}", "-P", script],
                                      check=True, capture_output=True, text=True).stdout.strip().replace("~", "-")

    def layout(self):
        cmake_layout(self)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "kernels/*"):
            copy(self, pattern, ROOT, self.export_sources_folder)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update({"BACKEND": str(self.options.backend), "PRECISION": str(self.options.precision),
                                          "EXAMPLES": "OFF", "TESTS": "OFF", "BENCH": "OFF", "CPU_ARCH": ""})
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build(target="isotope_device_code")

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install(component="headers")

    def package_info(self):
        # Consumers use the CMake package that was installed, with its flags and choices, instead of one that Conan writes.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("share", "cmake", "isotope")]
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []

    def package_id(self):
        del self.info.settings.compiler
        del self.info.settings.build_type
