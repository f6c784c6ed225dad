# An overlay port within the source tree: vcpkg install isotope --overlay-ports=packaging/vcpkg/ports. vcpkg has not run it; tests/repo/vcpkg_test.sh runs its
# steps with stand-ins for vcpkg's functions.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DBACKEND=cpu -DCPU_ARCH= -DEXAMPLES=OFF -DTESTS=OFF -DBENCH=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME isotope CONFIG_PATH share/cmake/isotope)
vcpkg_fixup_pkgconfig()

# The library is headers alone, which are the same for debugging.
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
