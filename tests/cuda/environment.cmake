# Without an NVIDIA driver, programs under test run on the emulated device, whose folder has a libcuda.so.1.
if(NOT ISOTOPE_CUDA_DRIVER)
  set(isotope_program_environment "LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/tests/cuda/emulator")
  if(DEFINED ENV{LD_LIBRARY_PATH} AND NOT "$ENV{LD_LIBRARY_PATH}" STREQUAL "")
    string(APPEND isotope_program_environment ":$ENV{LD_LIBRARY_PATH}")
  endif()
endif()
