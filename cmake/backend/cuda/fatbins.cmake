# The CUDA kernels of the cuda backend: finds nvcc, and compiles each kernels/cuda/**.cu to a fatbin, which is embedded in a C++ header.
include_guard(GLOBAL)

set(isotope_nvcc_minimum 12.8)

# isotope_nvcc_version(<result> <nvcc>): the version of a compiler; empty if it does not run.
function(isotope_nvcc_version result nvcc)
  execute_process(COMMAND ${nvcc} --version RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_QUIET)
  set(${result} "" PARENT_SCOPE)
  if(status STREQUAL "0" AND text MATCHES "release ([0-9]+\\.[0-9]+)")
    set(${result} ${CMAKE_MATCH_1} PARENT_SCOPE)
  endif()
endfunction()

# Sets the compiler in ISOTOPE_NVCC: the first that is new enough of those on PATH, in $CUDA_PATH/bin, in /usr/local/cuda/bin, and in build/cuda/bin, where
# get-nvcc.sh unpacks one. Each run searches again, so that a compiler that was installed later is found, unless the user has set one. ISOTOPE_NVCC_OLD names a
# compiler that was found and is too old.
function(isotope_find_nvcc)
  if(DEFINED CACHE{ISOTOPE_NVCC} AND NOT (DEFINED CACHE{ISOTOPE_NVCC_FOUND} AND "$CACHE{ISOTOPE_NVCC}" STREQUAL "$CACHE{ISOTOPE_NVCC_FOUND}"))
    if(NOT "$CACHE{ISOTOPE_NVCC}" STREQUAL "")  # commands of the build run in other folders
      get_filename_component(nvcc "$CACHE{ISOTOPE_NVCC}" ABSOLUTE)
      set(ISOTOPE_NVCC "${nvcc}" CACHE FILEPATH "compiler of the cuda kernels" FORCE)
    endif()
    return()
  endif()
  set(found "")
  set(old "")
  file(TO_CMAKE_PATH "$ENV{PATH}" folders)
  foreach(folder IN LISTS folders ITEMS "$ENV{CUDA_PATH}/bin" /usr/local/cuda/bin ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../../../build/cuda/bin)
    get_filename_component(nvcc "${folder}/nvcc" ABSOLUTE)
    if(found OR NOT EXISTS ${nvcc} OR IS_DIRECTORY ${nvcc})
      continue()
    endif()
    isotope_nvcc_version(version ${nvcc})
    if(version VERSION_GREATER_EQUAL isotope_nvcc_minimum)
      set(found ${nvcc})
    elseif(version AND NOT old)
      set(old "${nvcc} is ${version}")
    endif()
  endforeach()
  set(ISOTOPE_NVCC "${found}" CACHE FILEPATH "compiler of the cuda kernels" FORCE)
  set(ISOTOPE_NVCC_FOUND "${found}" CACHE INTERNAL "")
  set(ISOTOPE_NVCC_OLD "${old}" CACHE INTERNAL "")
  mark_as_advanced(ISOTOPE_NVCC)
endfunction()

# Sets ISOTOPE_CUDA_DRIVER to the driver's library on this machine, if there is one, unless the user has set it.
function(isotope_find_cuda_driver)
  if(DEFINED CACHE{ISOTOPE_CUDA_DRIVER} AND NOT (DEFINED CACHE{ISOTOPE_CUDA_DRIVER_FOUND} AND "$CACHE{ISOTOPE_CUDA_DRIVER}" STREQUAL "$CACHE{ISOTOPE_CUDA_DRIVER_FOUND}"))
    return()
  endif()
  set(found "")
  find_program(ldconfig ldconfig PATHS /sbin /usr/sbin NO_CACHE)
  if(ldconfig)
    execute_process(COMMAND ${ldconfig} -p OUTPUT_VARIABLE text ERROR_QUIET)
    if(text MATCHES "libcuda\\.so\\.1 [^\n]*=> ([^\n]+)")
      set(found ${CMAKE_MATCH_1})
    endif()
  endif()
  if(NOT found)
    file(TO_CMAKE_PATH "$ENV{LD_LIBRARY_PATH}" folders)
    foreach(folder IN LISTS folders ITEMS /usr/lib64 /usr/lib /usr/local/nvidia/lib64 /usr/lib/wsl/lib)
      if(NOT found AND EXISTS "${folder}/libcuda.so.1")
        set(found ${folder}/libcuda.so.1)
      endif()
    endforeach()
  endif()
  set(ISOTOPE_CUDA_DRIVER "${found}" CACHE FILEPATH "the NVIDIA driver's library, without which BACKEND=auto does not take cuda" FORCE)
  set(ISOTOPE_CUDA_DRIVER_FOUND "${found}" CACHE INTERNAL "")
  mark_as_advanced(ISOTOPE_CUDA_DRIVER)
endfunction()

# isotope_known_architectures(<result> <architecture>...): those that the compiler knows; says which others are left out. If it knows none, since all are newer than
# it is, the lowest architecture of the backend takes their place: the driver compiles its PTX for any later GPU.
function(isotope_known_architectures result)
  execute_process(COMMAND ${ISOTOPE_NVCC} --list-gpu-code RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT status STREQUAL "0")
    isotope_refuse("${ISOTOPE_NVCC} does not list the architectures that it knows. fix: -UISOTOPE_NVCC looks for another compiler.")
  endif()
  string(REGEX MATCHALL "sm_[0-9]+" codes "${text}")
  set(newest ${codes})
  list(SORT newest COMPARE NATURAL ORDER DESCENDING)
  list(GET newest 0 newest)
  string(REPLACE "sm_" "" newest ${newest})
  set(known "")
  set(unknown "")
  set(later FALSE)
  foreach(architecture IN LISTS ARGN)
    if(NOT architecture MATCHES "^([0-9]+)[af]?$")
      isotope_refuse("${isotope_prefix}CUDA_ARCHS='${ARGN}': '${architecture}' is not an architecture; the list has numbers such as 80, 90a or 120.")
    endif()
    if(sm_${CMAKE_MATCH_1} IN_LIST codes)
      list(APPEND known ${architecture})
    else()
      list(APPEND unknown ${architecture})
      if(CMAKE_MATCH_1 GREATER newest)
        set(later TRUE)
      endif()
    endif()
  endforeach()
  list(REMOVE_DUPLICATES known)
  if(later AND NOT known AND sm_80 IN_LIST codes)
    list(JOIN unknown ", " text)
    message(STATUS "isotope: ${ISOTOPE_NVCC} does not know the architectures ${text}: kernels are compiled for 80, whose PTX the driver compiles for later GPUs")
    set(${result} 80 PARENT_SCOPE)
    return()
  endif()
  if(unknown)
    list(JOIN unknown ", " text)
    message(STATUS "isotope: ${ISOTOPE_NVCC} does not know the architectures ${text}: they are left out")
  endif()
  if(NOT known)
    isotope_refuse("${isotope_prefix}CUDA_ARCHS='${ARGN}' names no architecture that ${ISOTOPE_NVCC} knows; nvcc --list-gpu-code lists them.")
  endif()
  set(${result} ${known} PARENT_SCOPE)
endfunction()

# isotope_code_options(<generate> <names> <own> <architecture>...): the options of nvcc for a source, and the names of the code that they make. <own> are the
# architectures that the source is written for, as in 90a; if it is empty, the source is general. Then 90a means sm_90, and PTX of the lowest architecture
# serves later GPUs.
function(isotope_code_options generate names own)
  set(options "")
  set(made "")
  if(own)
    foreach(architecture IN LISTS ARGN)
      if(architecture IN_LIST own)
        list(APPEND options -gencode=arch=compute_${architecture},code=sm_${architecture})
        list(APPEND made ${architecture})
      endif()
    endforeach()
  else()
    set(numbers ${ARGN})
    list(TRANSFORM numbers REPLACE "[af]$" "")
    list(REMOVE_DUPLICATES numbers)
    list(SORT numbers COMPARE NATURAL)
    foreach(number IN LISTS numbers)
      list(APPEND options -gencode=arch=compute_${number},code=sm_${number})
      list(APPEND made ${number})
    endforeach()
    list(GET numbers 0 lowest)
    list(APPEND options -gencode=arch=compute_${lowest},code=compute_${lowest})
    list(APPEND made compute_${lowest})
  endif()
  list(JOIN made "," made)
  set(${generate} "${options}" PARENT_SCOPE)
  set(${names} "${made}" PARENT_SCOPE)
endfunction()

# isotope_add_fatbins(<architectures>): makes <build>/fatbins/isotope/fatbins/<module>.hpp for every kernels/cuda/**.cu. The module of portable/x.cu and native/x.cu
# is x, that of reference/x.cu is reference_x. Two comments at the start of a source change how it is compiled:
#   // architectures: 90a       only for these; if the build has none of them, the module has no bytes
#   // flags: -fmad=false       further flags of nvcc; sources in reference/ have this one anyway, so that they round like the host
# <module>.hpp declares the code and is written here; <module>.bytes.hpp contains it and is made by the target isotope_fatbins.
function(isotope_add_fatbins architectures)
  if(NOT ISOTOPE_NVCC)
    set(why "no nvcc was found")
    if(ISOTOPE_NVCC_OLD)
      set(why "${ISOTOPE_NVCC_OLD}")
    endif()
    isotope_refuse("${isotope_prefix}BACKEND=cuda needs nvcc ${isotope_nvcc_minimum} or later, and ${why}. fix: cmake/backend/cuda/get-nvcc.sh build/cuda (no root rights needed), or ./quickstart deps --backend cuda, or -DISOTOPE_NVCC=FILE.")
  endif()
  if(NOT EXISTS "${ISOTOPE_NVCC}")
    isotope_refuse("ISOTOPE_NVCC='${ISOTOPE_NVCC}' is not there. fix: -UISOTOPE_NVCC looks for nvcc.")
  endif()
  string(REPLACE "," ";" architectures "${architectures}")
  isotope_known_architectures(architectures ${architectures})
  set(host "")
  find_program(gxx g++ NO_CACHE)  # nvcc preprocesses with g++ unless it is told otherwise
  if(NOT gxx)
    set(host -ccbin=${CMAKE_CXX_COMPILER})
  endif()

  set(root ${PROJECT_SOURCE_DIR}/kernels/cuda)
  set(folder ${PROJECT_BINARY_DIR}/fatbins)
  set(out ${folder}/isotope/fatbins)
  set(script ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/compile_kernel.cmake)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${root}/*.cu)
  list(SORT sources)
  file(MAKE_DIRECTORY ${out})
  set(headers "")
  set(units "")
  set(modules "")
  set(declared "")
  set(all "")
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH name ${root} ${source})
    string(REGEX REPLACE "\\.cu$" "" module ${name})
    string(REGEX REPLACE "^(portable|native)/" "" module ${module})
    string(REPLACE "/" "_" module ${module})
    if(module IN_LIST modules)
      isotope_refuse("kernels/cuda/${name}: another file makes the module ${module}, too. fix: rename one of them.")
    endif()
    list(APPEND modules ${module})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})  # its first lines may change
    file(STRINGS ${source} lines REGEX "^// (architectures|flags): ")
    set(own "")
    set(flags "")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^// [a-z]+: *" "" words "${line}")
      string(REGEX REPLACE "[ ,]+" ";" words "${words}")
      if(line MATCHES "^// architectures")
        set(own ${words})
      else()
        list(APPEND flags ${words})
      endif()
    endforeach()
    if(name MATCHES "^reference/")
      list(APPEND flags -fmad=false)
    endif()
    isotope_code_options(generate names "${own}" ${architectures})
    set(missing "")
    if(NOT generate)
      list(JOIN own "," missing)
    endif()
    set(bytes "${module}_bytes")
    set(include "#include \"${module}.bytes.hpp\"\n")
    if(missing)
      set(bytes "{}")
      set(include "")
    else()
      add_custom_command(
        OUTPUT ${out}/${module}.bytes.hpp
        BYPRODUCTS ${out}/${module}.fatbin ${out}/${module}.usage
        COMMAND ${CMAKE_COMMAND} -DNVCC=${ISOTOPE_NVCC} -DSOURCE=${source} -DMODULE=${module} -DOUT=${out} "-DGENERATE=${generate}"
                "-DFLAGS=${flags};${host};-I${root};-I${PROJECT_SOURCE_DIR}/include" -P ${script}
        DEPENDS ${source} ${script} ${ISOTOPE_NVCC}
        DEPFILE ${out}/${module}.d
        COMMENT "Compiling kernels/cuda/${name}"
        VERBATIM)
      list(APPEND headers ${out}/${module}.bytes.hpp)
    endif()
    set(value "{\"${module}\", \"${name}\", ${bytes}, \"${names}\", \"${missing}\"}")
    file(CONFIGURE OUTPUT ${out}/${module}.hpp CONTENT "#pragma once
#include <isotope/backend/cuda/launch.hpp>
#if defined(ISOTOPE_COMPILED_FATBINS)
namespace isotope::cuda::fatbins {
extern const device_code ${module};
}
#else
${include}namespace isotope::cuda::fatbins {
inline constexpr device_code ${module}${value};
}
#endif
" @ONLY)
    file(CONFIGURE OUTPUT ${folder}/${module}.cpp CONTENT "#include <isotope/backend/cuda/launch.hpp>
${include}namespace isotope::cuda::fatbins {
extern const device_code ${module};
const device_code ${module}${value};
}
" @ONLY)
    list(APPEND units ${folder}/${module}.cpp)
    string(APPEND declared "extern const device_code ${module};\n")
    string(APPEND all "    &fatbins::${module},\n")
  endforeach()
  set(list "static const device_code* const all[] = {\n${all}  };\n  return all;")
  if(NOT modules)
    set(list "return {};")
  endif()
  file(CONFIGURE OUTPUT ${folder}/device_code_files.cpp CONTENT "#include <isotope/backend/cuda/launch.hpp>
namespace isotope::cuda {
namespace fatbins {
${declared}}
std::span<const device_code* const> device_code_files() {
  ${list}
}
}
" @ONLY)
  isotope_code_options(generate names "" ${architectures})
  isotope_nvcc_version(nvcc ${ISOTOPE_NVCC})
  string(REGEX REPLACE "\\..*" "" driver "${nvcc}")
  if(driver GREATER_EQUAL 13)
    set(driver ${driver}000)
  else()
    set(driver 12040)
  endif()
  file(CONFIGURE OUTPUT ${out}/build.hpp CONTENT "#pragma once
#include <isotope/backend/cuda/devices.hpp>
namespace isotope::cuda::fatbins {
/// The architectures that general device code of this build runs on, as device_code::architectures lists them.
inline constexpr std::string_view architectures = \"${names}\";
/// Code of nvcc ${nvcc} needs a driver of the same major version; compressed code needs one of 12.4.
inline constexpr code_needs needs{architectures, ${driver}};
}
" @ONLY)
  add_custom_target(isotope_fatbins DEPENDS ${headers})
  add_dependencies(isotope_device_code isotope_fatbins)
  list(GET architectures 0 first)
  set_target_properties(isotope_device_code PROPERTIES ISOTOPE_CODE ${out} ISOTOPE_QUICK_OPTIONS -DISOTOPE_CUDA_ARCHS=${first})
  add_dependencies(isotope isotope_fatbins)
  target_include_directories(isotope INTERFACE $<BUILD_INTERFACE:${folder}>)
  target_link_libraries(isotope INTERFACE ${CMAKE_DL_LIBS})
  install(DIRECTORY ${folder}/isotope DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT headers FILES_MATCHING PATTERN "*.hpp")

  # The bytes of all modules compiled once: where ISOTOPE_COMPILED_FATBINS is defined, headers only declare them. Each module is a file of its own, since
  # compilers read long literals slowly.
  add_library(isotope_fatbin_bytes STATIC EXCLUDE_FROM_ALL ${units} ${folder}/device_code_files.cpp)
  set_target_properties(isotope_fatbin_bytes PROPERTIES UNITY_BUILD OFF)
  target_include_directories(isotope_fatbin_bytes PRIVATE ${out})
  target_link_libraries(isotope_fatbin_bytes PRIVATE isotope)
  target_compile_definitions(isotope_fatbin_bytes INTERFACE ISOTOPE_COMPILED_FATBINS)
  add_dependencies(isotope_fatbin_bytes isotope_fatbins)
endfunction()
