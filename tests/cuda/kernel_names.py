#!/usr/bin/env python3
"""kernel_names.py ROOT: checks that kernels in kernels/cuda/**.cu are declared in one form with unique names (reference_NAME in reference/), which the emulator
of tests and programs that load all code rely on, and that what headers launch by name is in the module that they name. Prints every breach; exits with 1 then."""
import pathlib
import re
import sys

FORM = re.compile(r' *extern "C" __global__ void (?:__launch_bounds__\(.*?\) +)?(\w+)\(const __grid_constant__ [\w:]+ \w+\) \{')
LAUNCH = re.compile(r'\bfatbins::(\w+),\s*"(\w+)"')


def module_of(file, root):
    """The module that the build makes of a source, see cmake/backend/cuda/fatbins.cmake."""
    name = file.relative_to(root).with_suffix("").as_posix()
    return re.sub("^(portable|native)/", "", name).replace("/", "_")


def breaches(root):
    root = pathlib.Path(root) / "kernels/cuda"
    kernels, modules = {}, {}
    for file in sorted(root.glob("**/*.cu")):
        where = file.relative_to(root).as_posix()
        module = module_of(file, root)
        if module in modules:
            yield f"{where}: {modules[module][0]} makes the module {module}, too"
        modules[module] = where, set()
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if "__global__" not in line.split("//")[0]:
                continue
            form = FORM.match(line)
            if form is None:
                yield f'{where}:{number}: a kernel is declared in one line: extern "C" __global__ void NAME(const __grid_constant__ TYPE a) {{'
                continue
            name = form[1]
            if name in kernels:
                yield f"{where}:{number}: {kernels[name]} has a kernel {name}, too"
            if name.startswith("reference_") != where.startswith("reference/"):
                yield f"{where}:{number}: names of kernels in reference/ begin with reference_, and no others: {name}"
            kernels[name] = where
            modules[module][1].add(name)
    for file in sorted(root.glob("**/*.hpp")):
        for module, name in LAUNCH.findall(file.read_text()):
            if module in modules and name not in modules[module][1]:
                yield f"{file.relative_to(root).as_posix()}: {modules[module][0]} has no kernel {name}"
            elif module not in modules:
                yield f"{file.relative_to(root).as_posix()}: no source makes the module {module}"


if __name__ == "__main__":
    found = list(breaches(sys.argv[1]))
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
