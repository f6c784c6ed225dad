# Planted bugs of the kernels, see tests/mutants/README.md. mutants_cuda is isotope-conform with host code from the mutated sources. The emulated device has modules
# of its own, which contain all bugs. On a GPU the program takes the device code of a module from the folder in ISOTOPE_MUTANT_MODULES if the file is there, and
# mutated_modules.py compiles such files: it is for bugs that only a GPU shows.
set(list ${CMAKE_CURRENT_LIST_DIR}/mutants.json)
isotope_mutated_tree(cuda ${list})
isotope_mutated_kernels(cuda ${mutants_tree} f32 bf16)
target_compile_definitions(mutated_cuda_f32 PRIVATE ISOTOPE_COMPILED_FATBINS)
target_compile_definitions(mutated_cuda_bf16 PRIVATE ISOTOPE_COMPILED_FATBINS)
set(mutated_emulator ${CMAKE_CURRENT_BINARY_DIR}/mutants/cuda_emulator)
add_custom_target(mutants_cuda_emulator)
isotope_emulated_modules(mutants_cuda_emulator mutated ${mutants_tree}/include/isotope/kernels/cuda ${mutants_tree}/include ${mutated_emulator})
foreach(target isotope_emulated_device isotope_emulated_driver)
  add_custom_command(TARGET mutants_cuda_emulator POST_BUILD COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:${target}> ${mutated_emulator} VERBATIM)
  add_dependencies(mutants_cuda_emulator ${target})
endforeach()

# The definitions of modules, but with bytes from a file.
get_target_property(units isotope_fatbin_bytes SOURCES)
list(FILTER units EXCLUDE REGEX "/device_code_files\\.cpp$")
set(replaced "")
foreach(unit IN LISTS units)
  get_filename_component(module ${unit} NAME_WE)
  file(READ ${unit} text)
  string(REGEX REPLACE ", (${module}_bytes|{})," ", isotope::mutants::bytes_of(\"${module}\", \\1)," text "${text}")
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/mutants/cuda_modules/${module}.cpp CONTENT "#include \"mutated_module.hpp\"\n${text}" @ONLY)
  list(APPEND replaced ${CMAKE_CURRENT_BINARY_DIR}/mutants/cuda_modules/${module}.cpp)
endforeach()
add_library(mutants_cuda_modules OBJECT EXCLUDE_FROM_ALL ${replaced})
set_target_properties(mutants_cuda_modules PROPERTIES UNITY_BUILD OFF)
target_include_directories(mutants_cuda_modules PRIVATE ${CMAKE_CURRENT_LIST_DIR} ${PROJECT_BINARY_DIR}/fatbins/isotope/fatbins)
target_link_libraries(mutants_cuda_modules PRIVATE isotope_own)
target_compile_definitions(mutants_cuda_modules PRIVATE ISOTOPE_COMPILED_FATBINS)
add_dependencies(mutants_cuda_modules isotope_fatbins)

isotope_mutant_program(cuda ${mutants_tree} SOURCES ${CMAKE_CURRENT_LIST_DIR}/open_mutated.cpp
                       WORDS --behind ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${mutated_emulator})
target_compile_definitions(mutants_cuda PRIVATE ISOTOPE_COMPILED_CUDA_F32 ISOTOPE_COMPILED_CUDA_BF16)
target_compile_options(mutants_cuda PRIVATE -w)
target_link_libraries(mutants_cuda PRIVATE mutants_cuda_modules isotope_fatbin_bytes isotope_cpu_f32 isotope_cpu_bf16)
isotope_label_targets(mutants_cuda_emulator mutants)
set_tests_properties(mutants.cuda PROPERTIES TIMEOUT 7200)
if(hopper_code)  # kernels for sm_90a alone, on an emulated device that is one, where small matmuls run on the kernels of large ones, too
  isotope_mutants_test(cuda_hopper ${list} mutants_cuda --has hopper
                       --behind ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${mutated_emulator} ISOTOPE_EMULATED_COMPUTE=90 ISOTOPE_LARGE_KERNELS=1)
  set_tests_properties(mutants.cuda_hopper PROPERTIES LABELS "mutants;slow" TIMEOUT 1800)
endif()

# Tests whose emulated device has the modules with all bugs: they find its driver by the path that a header of the build names.
isotope_mutants_of_tests(cuda ${mutants_tree} ${CMAKE_CURRENT_LIST_DIR}/whole_step_test.cpp)
set(emulator ${mutated_emulator})
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/mutants/cuda_choice/cuda_emulated_driver.hpp CONTENT "#pragma once
namespace isotope::cuda_test {
inline constexpr char emulated_driver[] = \"@emulator@/libcuda.so.1\", emulated_blas[] = \"@emulator@/blas\", partial_blas[] = \"@emulator@/blas_partial\";
}
" @ONLY)
add_dependencies(mutants_cuda_tests mutants_cuda_emulator)
