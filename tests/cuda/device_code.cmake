# Tests of the compiled device code.
isotope_label_targets(isotope_fatbins cuda)

# The machine code of kernels, see machine_code.txt. cuobjdump is beside nvcc or on PATH.
get_filename_component(beside "${ISOTOPE_NVCC}" DIRECTORY)
find_program(ISOTOPE_CUOBJDUMP cuobjdump HINTS ${beside} ${PROJECT_SOURCE_DIR}/build/cuda/bin)
mark_as_advanced(ISOTOPE_CUOBJDUMP)
set(cuobjdump "")
if(ISOTOPE_CUOBJDUMP)
  set(cuobjdump ${ISOTOPE_CUOBJDUMP})
endif()
add_test(NAME cuda.machine_code COMMAND ${ISOTOPE_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/machine_code.py ${CMAKE_CURRENT_LIST_DIR}/machine_code.txt
                                        ${PROJECT_BINARY_DIR}/fatbins/isotope/fatbins ${cuobjdump})
add_test(NAME cuda.machine_code_is_checked COMMAND ${ISOTOPE_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/machine_code_test.py)
set_tests_properties(cuda.machine_code cuda.machine_code_is_checked PROPERTIES LABELS "cuda;machine_code" TIMEOUT 120 SKIP_RETURN_CODE 77)
