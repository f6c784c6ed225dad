# The backend of tests/extend/toy_backend.hpp, for plain loops in f32.
isotope_backend(
  RANK 99
  PRECISIONS f32
  DEFAULT_PRECISION f32
  REASON "plain loops run everywhere"
  PRESETS asan)

function(isotope_toy_configure)
  target_compile_definitions(isotope INTERFACE TOY_IS_CONFIGURED)
  add_custom_target(toy_code COMMAND ${CMAKE_COMMAND} -E touch ${PROJECT_BINARY_DIR}/toy_code)
  add_dependencies(isotope_device_code toy_code)
endfunction()
function(isotope_toy_compiled)
  target_compile_definitions(isotope_own INTERFACE TOY_IS_COMPILED)
endfunction()
