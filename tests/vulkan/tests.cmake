# The gate builds these targets even if no test has the label.
foreach(label vulkan subgroups matrices)
  if(NOT TARGET tests_${label})
    add_custom_target(tests_${label})
  endif()
endforeach()

isotope_add_shader_words(isotope_observed_shader_words ${PROJECT_SOURCE_DIR}/kernels/vulkan ${PROJECT_BINARY_DIR}/observed_shaders
                         ${CMAKE_CURRENT_LIST_DIR}/observe_launch.glsl)
target_link_libraries(vulkan_launch_size_test PRIVATE isotope_observed_shader_words)
target_compile_definitions(vulkan_spirv_test PRIVATE ISOTOPE_SPIRV_VAL="${ISOTOPE_SPIRV_VAL}")

# The headers include compiled shaders.
if(TEST headers.of_vulkan)
  add_dependencies(tests_vulkan isotope_shaders)
endif()

# Planted bugs, which nightly builds have. Code that records and submits kernels is also compiled from the mutated sources, and it gives each pipeline the mutant's number.
if(isotope_has_mutants)
  set(list ${CMAKE_CURRENT_LIST_DIR}/mutants.json)
  isotope_mutated_tree(vulkan ${list})
  isotope_mutated_kernels(vulkan ${mutants_tree} f32)
  target_compile_definitions(mutated_vulkan_f32 PRIVATE ISOTOPE_COMPILED_SHADERS)
  isotope_add_shader_words(mutated_vulkan_shader_words ${mutants_tree}/include/isotope/kernels/vulkan ${CMAKE_CURRENT_BINARY_DIR}/mutants/vulkan_shaders "")
  add_dependencies(mutated_vulkan_shader_words_modules mutants_tree_vulkan)
  isotope_mutant_program(vulkan ${mutants_tree} SOURCES ${CMAKE_CURRENT_LIST_DIR}/open_mutated.cpp)
  target_compile_definitions(mutants_vulkan PRIVATE ISOTOPE_COMPILED_VULKAN_F32)
  target_compile_options(mutants_vulkan PRIVATE -w)
  target_link_libraries(mutants_vulkan PRIVATE mutated_vulkan_shader_words isotope_vulkan_bf16 isotope_cpu_f32 isotope_cpu_bf16)
  foreach(need barriers matrices)
    isotope_mutants_test(vulkan_${need} ${list} mutants_vulkan --has ${need})
    set_tests_properties(mutants.vulkan_${need} PROPERTIES LABELS "mutants_matrices;slow" SKIP_RETURN_CODE 77)
  endforeach()
  isotope_label_targets(mutants_vulkan mutants_matrices)
  isotope_mutants_of_tests(vulkan ${mutants_tree} ${CMAKE_CURRENT_LIST_DIR}/choose_constant.cpp ${CMAKE_CURRENT_LIST_DIR}/whole_step_test.cpp)
  target_link_libraries(mutants_vulkan_tests PRIVATE mutated_vulkan_shader_words)
endif()
