# Planted bugs, see README.md. There is one program per backend, which its tests.cmake makes if isotope_has_mutants is true: in one build, since the results do
# not depend on compiler and precision, and with -DNIGHTLY=ON, since the kernels compile for minutes. The gate has the planner's bugs and applies all lists.
set(isotope_has_mutants FALSE)
set(isotope_has_planner_mutants FALSE)
if(TARGET isotope-conform AND CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_BUILD_TYPE STREQUAL Release AND NOT isotope_option_SANITIZE
   AND isotope_precision STREQUAL f32)
  set(isotope_has_mutants ${isotope_option_NIGHTLY})
  set(isotope_has_planner_mutants TRUE)
  add_test(NAME mutants.list COMMAND ${ISOTOPE_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/mutate_test.py)
  set_tests_properties(mutants.list PROPERTIES LABELS mutants TIMEOUT 60)
  add_test(NAME mutants.lists_fit_the_sources COMMAND ${ISOTOPE_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/mutate_test.py ${PROJECT_SOURCE_DIR})
  set_tests_properties(mutants.lists_fit_the_sources PROPERTIES LABELS mutants TIMEOUT 60)
endif()

# isotope_mutated_tree(<name> <list>): adds the target mutants_tree_<name>, and sets mutants_tree to the folder with the mutated sources of the list.
function(isotope_mutated_tree name list)
  set(mutants ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  set(tree ${CMAKE_CURRENT_BINARY_DIR}/mutants/${name})
  set(script ${mutants}/mutate.py)
  set(inputs "")
  set(outputs ${tree}/include/isotope/mutants/chosen.hpp)
  foreach(top include/isotope kernels)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/${top} ${PROJECT_SOURCE_DIR}/${top}/*.hpp ${PROJECT_SOURCE_DIR}/${top}/*.cpp
         ${PROJECT_SOURCE_DIR}/${top}/*.comp ${PROJECT_SOURCE_DIR}/${top}/*.glsl ${PROJECT_SOURCE_DIR}/${top}/*.h ${PROJECT_SOURCE_DIR}/${top}/*.cuh
         ${PROJECT_SOURCE_DIR}/${top}/*.cu)
    string(REGEX REPLACE "^kernels$" "include/isotope/kernels" to ${top})
    foreach(file IN LISTS files)
      list(APPEND inputs ${PROJECT_SOURCE_DIR}/${top}/${file})
      list(APPEND outputs ${tree}/${to}/${file})
    endforeach()
  endforeach()
  add_custom_command(
    OUTPUT ${tree}/stamp
    BYPRODUCTS ${outputs}
    COMMAND ${ISOTOPE_PYTHON} -B ${script} ${list} ${PROJECT_SOURCE_DIR} ${tree}
    COMMAND ${CMAKE_COMMAND} -E touch ${tree}/stamp
    DEPENDS ${list} ${script} ${mutants}/chosen.hpp ${inputs}
    COMMENT "Writing the mutants of ${name}"
    VERBATIM)
  add_custom_target(mutants_tree_${name} DEPENDS ${tree}/stamp)
  set(mutants_tree ${tree} PARENT_SCOPE)
endfunction()

# isotope_mutated_kernels(<backend> <tree> <precision>...): adds the libraries mutated_<backend>_<precision>, which replace isotope_<backend>_<precision>.
function(isotope_mutated_kernels backend tree)
  foreach(kernel_precision IN LISTS ARGN)
    set(source ${tree}/include/isotope/kernels/${backend}/compiled/${kernel_precision}.cpp)
    set(library mutated_${backend}_${kernel_precision})
    add_library(${library} STATIC EXCLUDE_FROM_ALL ${source})
    set_source_files_properties(${source} PROPERTIES GENERATED TRUE)
    add_dependencies(${library} mutants_tree_${backend})
    target_include_directories(${library} BEFORE PRIVATE ${tree}/include)
    target_link_libraries(${library} PRIVATE isotope_own)
    target_compile_options(${library} PRIVATE -w)  # mutated code has conditions that are constant, and operands of mixed types
  endforeach()
endfunction()

# isotope_mutant_program(<backend> <tree> [SOURCES <source>...] [WORDS <word>...]): adds mutants_<backend>, which is isotope-conform with the mutated kernels of
# the backend, and the test that runs it for tests/<backend>/mutants.json. The caller links other libraries. SOURCES replace the objects named built_*; WORDS
# are further arguments of mutants_test.py.
function(isotope_mutant_program backend tree)
  cmake_parse_arguments(arg "" "" "SOURCES;WORDS" ${ARGN})
  set(program mutants_${backend})
  set(objects $<TARGET_OBJECTS:isotope-conform>)
  if(arg_SOURCES)
    set(objects $<FILTER:${objects},EXCLUDE,/built_>)
  endif()
  add_executable(${program} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/choose.cpp ${arg_SOURCES} ${objects})
  add_dependencies(${program} mutants_tree_${backend})
  target_include_directories(${program} BEFORE PRIVATE ${tree}/include)
  foreach(kernel_precision f32 bf16)
    if(TARGET mutated_${backend}_${kernel_precision})
      target_link_libraries(${program} PRIVATE mutated_${backend}_${kernel_precision})
    endif()
  endforeach()
  isotope_find(Eigen3)
  target_link_libraries(${program} PRIVATE isotope_specifications isotope_own isotope_dep_Eigen3 isotope_io)
  isotope_use_build_facts(${program})
  isotope_mutants_test(${backend} ${CMAKE_CURRENT_SOURCE_DIR}/${backend}/mutants.json ${program} ${arg_WORDS})
  set_tests_properties(mutants.${backend} PROPERTIES LABELS "mutants;slow")
  isotope_label_targets(${program} mutants)
endfunction()

# isotope_mutants_of_tests(<backend> <tree> <source>...): adds mutants_<backend>_tests, a program with these tests, and the test mutants.<backend>_tests, which runs it for
# those of tests/<backend>/mutants.json that name tests. Its host code is that of the sources, and the caller links device code from the mutated ones.
function(isotope_mutants_of_tests backend tree)
  set(program mutants_${backend}_tests)
  set(mutants ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  add_executable(${program} EXCLUDE_FROM_ALL ${mutants}/choose.cpp ${ARGN})
  set_target_properties(${program} PROPERTIES UNITY_BUILD OFF)
  add_dependencies(${program} mutants_tree_${backend})
  isotope_test_settings(${program} -O0 f32 bf16 f64)
  set(choice ${CMAKE_CURRENT_BINARY_DIR}/mutants/${backend}_choice)
  file(CONFIGURE OUTPUT ${choice}/isotope/mutants/chosen.hpp CONTENT "#include \"@mutants@/chosen.hpp\"\n" @ONLY)
  target_include_directories(${program} PRIVATE ${choice})
  isotope_mutants_test(${backend}_tests ${CMAKE_CURRENT_SOURCE_DIR}/${backend}/mutants.json ${program} --tests)
  set_tests_properties(mutants.${backend}_tests PROPERTIES LABELS "mutants;slow")
  isotope_label_targets(${program} mutants)
endfunction()

# isotope_mutants_test(<name> <list> <program> [<word>...]): adds the test mutants.<name>.
function(isotope_mutants_test name list program)
  add_test(NAME mutants.${name} COMMAND ${ISOTOPE_PYTHON} -B ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/mutants_test.py ${list} $<TARGET_FILE:${program}> ${ARGN})
  set_tests_properties(mutants.${name} PROPERTIES TIMEOUT 600 PROCESSORS 2)
endfunction()
