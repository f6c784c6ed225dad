#!/bin/sh
# The vcpkg port: its manifest names the version of the sources, and its steps install what a project finds, with stand-ins for vcpkg's functions that call
# CMake as those do. vcpkg itself does not run here.
# vcpkg_test.sh SOURCE_DIR BINARY_DIR COMPILER
set -u
source=$1
compiler=$3
port=$source/packaging/vcpkg/ports/isotope
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
fail() {
  echo "$1"
  [ ! -f "$work/log" ] || tail -n 20 "$work/log"
  exit 1
}
release=$(sed -n 's/^ *VERSION \([0-9.]*\)$/\1/p' "$source/CMakeLists.txt")
python3 -B - "$port/vcpkg.json" "$release" <<'PYTHON' || fail "vcpkg.json is not as vcpkg wants it"
import json, re, sys
manifest = json.load(open(sys.argv[1]))
assert manifest["name"] == "isotope" and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", manifest["name"])
assert manifest["version"] == sys.argv[2], (manifest["version"], sys.argv[2])
assert set(manifest) <= {"name", "version", "description", "license", "supports", "dependencies"}, set(manifest)
for dependency in manifest["dependencies"]:
    assert isinstance(dependency, str) or dependency["host"], dependency
PYTHON

cat >"$work/run.cmake" <<'CMAKE'
cmake_minimum_required(VERSION 3.22)
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  foreach(kind IN ITEMS debug release)
    set(prefix ${CURRENT_PACKAGES_DIR})
    if(kind STREQUAL debug)
      string(APPEND prefix /debug)
    endif()
    run(${CMAKE_COMMAND} -S ${arg_SOURCE_PATH} -B ${WORK}/${kind} ${arg_OPTIONS} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_INSTALL_PREFIX=${prefix} -DCMAKE_BUILD_TYPE=${kind})
  endforeach()
endfunction()
function(vcpkg_cmake_install)
  foreach(kind IN ITEMS debug release)
    run(${CMAKE_COMMAND} --build ${WORK}/${kind} --target install)
  endforeach()
endfunction()
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "PACKAGE_NAME;CONFIG_PATH" "")
  if(NOT arg_CONFIG_PATH STREQUAL "share/${arg_PACKAGE_NAME}")
    file(RENAME ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH} ${CURRENT_PACKAGES_DIR}/share/${arg_PACKAGE_NAME})
  endif()
  # As vcpkg does, for files that moved: two folders up instead of three.
  file(GLOB files ${CURRENT_PACKAGES_DIR}/share/${arg_PACKAGE_NAME}/*.cmake)
  foreach(file IN LISTS files)
    file(READ ${file} text)
    string(REGEX REPLACE "get_filename_component\\(_IMPORT_PREFIX \"\\\${CMAKE_CURRENT_LIST_FILE}\" PATH\\)(\nget_filename_component\\(_IMPORT_PREFIX \"\\\${_IMPORT_PREFIX}\" PATH\\))*"
                         "get_filename_component(_IMPORT_PREFIX \"\${CMAKE_CURRENT_LIST_FILE}\" PATH)\nget_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)\nget_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)" text "${text}")
    string(REPLACE "\${CMAKE_CURRENT_LIST_DIR}/../../../" "\${CMAKE_CURRENT_LIST_DIR}/../../" text "${text}")
    file(WRITE ${file} "${text}")
  endforeach()
endfunction()
function(vcpkg_fixup_pkgconfig)
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FILE_LIST")
  configure_file(${arg_FILE_LIST} ${CURRENT_PACKAGES_DIR}/share/isotope/copyright COPYONLY)
endfunction()
include(${PORT}/portfile.cmake)
CMAKE
cmake -DWORK="$work/build" -DCURRENT_PACKAGES_DIR="$work/installed" -DCXX="$compiler" -DPORT="$port" -P "$work/run.cmake" >"$work/log" 2>&1 || fail "the port's steps fail"
for file in include/isotope/isotope.hpp include/isotope/kernels/cpu/all.hpp share/isotope/isotopeConfig.cmake share/isotope/copyright; do
  [ -f "$work/installed/$file" ] || fail "the port does not install $file"
done
[ ! -e "$work/installed/debug" ] || fail "the port leaves a folder for debugging"
mkdir "$work/app" || exit 1
printf 'cmake_minimum_required(VERSION 3.22)\nproject(app LANGUAGES CXX)\nfind_package(isotope REQUIRED)\nget_target_property(x isotope::isotope INTERFACE_INCLUDE_DIRECTORIES)\nmessage(STATUS "include ${x}")\n' >"$work/app/CMakeLists.txt"
cmake -S "$work/app" -B "$work/app/build" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$work/installed" >"$work/log" 2>&1 || fail "a project does not find the port"
grep -qF "include $work/installed/include" "$work/log" || fail "the port's include folder is not where it was installed"
