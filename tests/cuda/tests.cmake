include(${CMAKE_CURRENT_LIST_DIR}/device_code.cmake)

# The emulated driver: <build>/tests/cuda/emulator/libcuda.so.1, which runs the kernels on the processor, with one library modules/NAME.so for each file of
# kernels/cuda whose machine code the build has. Code for 90a alone runs where a test asks for a device of compute capability 9.0. Tests name it as the driver's library where there is no GPU.
isotope_find(boost-context boost/context/fiber.hpp boost_context)
add_custom_target(tests_cuda_emulator)
set(emulator ${CMAKE_CURRENT_BINARY_DIR}/cuda/emulator)
set(emulator_sources ${CMAKE_CURRENT_LIST_DIR}/emulator)

# Everything that they need of the C++ library is inside them, so that tests that count allocations do not count those of the emulator.
function(isotope_emulator_settings target)
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF
                        BUILD_RPATH "\$ORIGIN;\$ORIGIN/.." LIBRARY_OUTPUT_DIRECTORY ${emulator})
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_compile_options(${target} PRIVATE -O2)
  target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc LINKER:-Bsymbolic LINKER:--exclude-libs,ALL LINKER:-z,defs)
endfunction()

add_library(isotope_emulated_device SHARED ${emulator_sources}/runtime.cpp ${emulator_sources}/runtime_hopper.cpp)
isotope_emulator_settings(isotope_emulated_device)
target_link_libraries(isotope_emulated_device PRIVATE isotope_dep_boost-context ${CMAKE_DL_LIBS})

add_library(isotope_emulated_driver SHARED ${emulator_sources}/driver.cpp ${emulator_sources}/driver_capture.cpp ${emulator_sources}/driver_hopper.cpp
                                            ${emulator_sources}/driver_memory.cpp ${emulator_sources}/driver_work.cpp)
isotope_emulator_settings(isotope_emulated_driver)
set_target_properties(isotope_emulated_driver PROPERTIES OUTPUT_NAME cuda VERSION 1 SOVERSION 1)
target_include_directories(isotope_emulated_driver PRIVATE ${PROJECT_SOURCE_DIR}/include)
# Its device is one that the build has general code for. Tests ask for one of compute capability 9.0 where they test its own instructions.
file(STRINGS ${PROJECT_BINARY_DIR}/fatbins/isotope/fatbins/build.hpp compute REGEX "architectures = ")
string(REGEX REPLACE "^[^\"]*\"(compute_)?([0-9]+).*$" "\\2" compute "${compute}")
if(compute EQUAL 90)
  set(compute 91)
endif()
file(STRINGS ${PROJECT_BINARY_DIR}/fatbins/isotope/fatbins/build.hpp hopper_code REGEX "architectures = \"(.*,)?90[,\"]")
target_compile_definitions(isotope_emulated_driver PRIVATE ISOTOPE_EMULATED_COMPUTE=${compute} ISOTOPE_FATBIN_FOLDER="${PROJECT_BINARY_DIR}/fatbins/isotope/fatbins")
target_link_libraries(isotope_emulated_driver PRIVATE isotope_emulated_device Boost::headers ${CMAKE_DL_LIBS})

# The emulated cuBLASLt is in a folder of its own, which tests name: the loader does not find it there. Another folder has a libcublasLt.so.13 that lacks an entry
# point, and a libcublasLt.so.12 that is whole.
function(isotope_emulated_blas folder version)
  add_library(isotope_emulated_${folder}_${version} SHARED ${emulator_sources}/blas.cpp)
  isotope_emulator_settings(isotope_emulated_${folder}_${version})
  set_target_properties(isotope_emulated_${folder}_${version} PROPERTIES OUTPUT_NAME cublasLt SUFFIX .so.${version} NO_SONAME TRUE
                                                                         LIBRARY_OUTPUT_DIRECTORY ${emulator}/${folder})
  target_include_directories(isotope_emulated_${folder}_${version} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_compile_definitions(isotope_emulated_${folder}_${version} PRIVATE ${ARGN})
  target_link_libraries(isotope_emulated_${folder}_${version} PRIVATE Boost::headers ${CMAKE_DL_LIBS})
  add_dependencies(tests_cuda_emulator isotope_emulated_${folder}_${version})
endfunction()
isotope_emulated_blas(blas 13)
isotope_emulated_blas(blas_partial 13 ISOTOPE_EMULATED_BLAS_PARTIAL)
isotope_emulated_blas(blas_partial 12)

set(flags -w)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND flags -mfma -mf16c)
endif()
set(checks "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(checks -fsanitize=alignment,bounds -fno-sanitize-recover=all)
endif()
# isotope_emulated_modules(<target> <prefix> <kernels> <include> <emulator>): adds to the target one library <emulator>/modules/NAME.so for each file of
# kernels/cuda whose machine code the build has. Its text is below <kernels>, and the headers of the project below <include>.
file(GLOB_RECURSE device_sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/kernels/cuda ${PROJECT_SOURCE_DIR}/kernels/cuda/*.cu)
function(isotope_emulated_modules target prefix kernels include emulator)
  foreach(name IN LISTS device_sources)
    file(STRINGS ${PROJECT_SOURCE_DIR}/kernels/cuda/${name} own REGEX "^// architectures: ")
    if(own AND NOT hopper_code)
      continue()
    endif()
    set(source ${kernels}/${name})
    string(REGEX REPLACE "\\.cu$" "" module ${name})
    string(REGEX REPLACE "^(portable|native)/" "" module ${module})
    string(REPLACE "/" "_" module ${module})
    set(library ${prefix}_${module})
    set(wrapped ${CMAKE_CURRENT_BINARY_DIR}/cuda/wrapped/${library}.cpp)
    add_custom_command(
      OUTPUT ${wrapped}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/cuda/wrapped
      COMMAND sh ${emulator_sources}/wrap_kernels.sh ${source} module > ${wrapped}
      DEPENDS ${source} ${emulator_sources}/wrap_kernels.sh
      VERBATIM)
    add_library(${library} MODULE EXCLUDE_FROM_ALL ${wrapped})
    isotope_emulator_settings(${library})
    set_target_properties(${library} PROPERTIES PREFIX "" OUTPUT_NAME ${module} LIBRARY_OUTPUT_DIRECTORY ${emulator}/modules)
    file(STRINGS ${PROJECT_SOURCE_DIR}/kernels/cuda/${name} exact REGEX "^// flags:.*-fmad=false")
    set(contract "")
    if(exact OR name MATCHES "^reference/")
      set(contract -ffp-contract=off)
    endif()
    target_compile_options(${library} PRIVATE ${flags} ${contract} ${checks} -include ${emulator_sources}/device_language.h)
    target_include_directories(${library} PRIVATE ${kernels} ${include} ${emulator_sources})
    target_link_options(${library} PRIVATE ${checks})
    target_link_libraries(${library} PRIVATE isotope_emulated_device)
    add_dependencies(${target} ${library})
  endforeach()
endfunction()
isotope_emulated_modules(tests_cuda_emulator emulated ${PROJECT_SOURCE_DIR}/kernels/cuda ${PROJECT_SOURCE_DIR}/include ${emulator})
add_dependencies(tests_cuda_emulator isotope_emulated_device isotope_emulated_driver)

# Where the emulated libraries are, and that they are built before what may use them.
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/cuda/include/cuda_emulated_driver.hpp CONTENT "#pragma once
namespace isotope::cuda_test {
inline constexpr char emulated_driver[] = \"@emulator@/libcuda.so.1\", emulated_blas[] = \"@emulator@/blas\", partial_blas[] = \"@emulator@/blas_partial\";
}
" @ONLY)
foreach(program IN LISTS programs)
  target_include_directories(${program} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/cuda/include)
  add_dependencies(${program} tests_cuda_emulator)
endforeach()

# Kernels with mistakes, for the test of the emulated device.
set(wrapped ${CMAKE_CURRENT_BINARY_DIR}/cuda/wrapped/emulator_checks.cpp)
add_custom_command(
  OUTPUT ${wrapped}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/cuda/wrapped
  COMMAND sh ${emulator_sources}/wrap_kernels.sh ${emulator_sources}/checks.cu > ${wrapped}
  DEPENDS ${emulator_sources}/checks.cu ${emulator_sources}/wrap_kernels.sh
  VERBATIM)
add_library(isotope_emulator_checks OBJECT ${wrapped})
target_compile_features(isotope_emulator_checks PRIVATE cxx_std_20)
target_compile_options(isotope_emulator_checks PRIVATE -O2 ${flags} ${checks} -include ${emulator_sources}/device_language.h)
target_include_directories(isotope_emulator_checks PRIVATE ${PROJECT_SOURCE_DIR}/kernels/cuda ${PROJECT_SOURCE_DIR}/include ${emulator_sources})
add_library(isotope_emulator_runtime OBJECT ${emulator_sources}/runtime.cpp ${emulator_sources}/runtime_hopper.cpp)
target_compile_features(isotope_emulator_runtime PRIVATE cxx_std_20)
target_link_libraries(isotope_emulator_runtime PRIVATE isotope_dep_boost-context)
set_target_properties(isotope_emulator_checks isotope_emulator_runtime PROPERTIES UNITY_BUILD OFF)
target_link_libraries(cuda_emulator_test PRIVATE isotope_emulator_checks isotope_emulator_runtime isotope_dep_boost-context ${CMAKE_DL_LIBS})
target_link_options(cuda_emulator_test PRIVATE ${checks})

# NVIDIA's header, against which the declarations of the driver's entry points are compared.
get_filename_component(toolkit "${ISOTOPE_NVCC}" REALPATH)
get_filename_component(toolkit "${toolkit}/../../include" ABSOLUTE)
foreach(program IN LISTS programs)
  if(program MATCHES "^cuda_" AND EXISTS ${toolkit}/cuda.h)
    target_include_directories(${program} SYSTEM PRIVATE ${toolkit})
  endif()
endforeach()

# The assembler of the toolkit, for the test of generated code.
get_filename_component(toolkit "${ISOTOPE_NVCC}" REALPATH)
get_filename_component(toolkit "${toolkit}/../ptxas" ABSOLUTE)
target_compile_definitions(cuda_ptx_assembler_test PRIVATE ISOTOPE_PTXAS="${toolkit}")

if(isotope_has_mutants)
  include(${CMAKE_CURRENT_LIST_DIR}/mutants.cmake)
endif()
