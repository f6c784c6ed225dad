# isotope::io: what include/isotope/io, include/isotope/config and include/isotope/train need besides isotope::isotope; the core does not need it. Our own build
# includes it, and the installed package for find_package(isotope COMPONENTS io); a project with isotope as a subproject includes it after add_subdirectory.
include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/dependencies.cmake)

isotope_find(CLI11)
# These are found by their headers, because the packages' CMake targets link shared libraries that are not needed here.
isotope_find(tomlplusplus toml++/toml.h)
isotope_find(protozero protozero/pbf_writer.hpp)
isotope_find(xxhash xxhash.h)
isotope_find(utf8proc utf8proc.h utf8proc)

# Boost's headers contain the source of Boost.JSON. Compiled here, it needs no other package and has the flags of this build.
set(isotope_json_source ${CMAKE_CURRENT_BINARY_DIR}/isotope_json.cpp)
file(CONFIGURE OUTPUT ${isotope_json_source} CONTENT "#include <boost/json/src.hpp>\n")
add_library(isotope_json STATIC ${isotope_json_source})
target_compile_features(isotope_json PUBLIC cxx_std_20)
target_link_libraries(isotope_json PUBLIC Boost::headers)

add_library(isotope_io INTERFACE)
add_library(isotope::io ALIAS isotope_io)
target_link_libraries(isotope_io INTERFACE isotope::isotope isotope_json isotope_dep_CLI11 isotope_dep_tomlplusplus isotope_dep_protozero
                                           isotope_dep_xxhash isotope_dep_utf8proc)
