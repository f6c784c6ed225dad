# Only the tests for backends, without the kernels of the host, which would have to be compiled first.
add_executable(toy_suite ${CMAKE_CURRENT_LIST_DIR}/suite.cpp)
target_link_libraries(toy_suite PRIVATE isotope_own isotope_dep_GTest)
target_include_directories(toy_suite PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_options(toy_suite PRIVATE -O0)
set_target_properties(toy_suite PROPERTIES UNITY_BUILD OFF)
add_test(NAME toy.suite COMMAND toy_suite)
