# NVIDIA GPUs from compute capability 8.0 on. Building needs nvcc 12.8 or later, which cuda/get-nvcc.sh unpacks without root rights, but neither a driver nor a
# GPU; programs open the driver when they start. BACKEND=auto, however, only takes this backend where an NVIDIA driver is installed, since nothing replaces a
# missing GPU.
include(${CMAKE_CURRENT_LIST_DIR}/cuda/fatbins.cmake)
isotope_backend(
  RANK 2
  PRECISIONS f32 bf16
  DEFAULT_PRECISION bf16
  REASON "nvcc and an NVIDIA driver are here"
  PRESETS clang nightly asan)

# Of its tests, those on all targets compute what kernels should give. The others wait for a device or the emulator, which is compiled apart.
set(isotope_cuda_optimised_tests everywhere)

function(isotope_cuda_usable result)
  isotope_find_nvcc()
  isotope_find_cuda_driver()
  set(${result} FALSE PARENT_SCOPE)
  if(ISOTOPE_NVCC AND ISOTOPE_CUDA_DRIVER)
    set(${result} TRUE PARENT_SCOPE)
  endif()
endfunction()

function(isotope_cuda_configure)
  isotope_find_nvcc()
  isotope_option(CUDA_ARCHS "80;86;89;90a;100;120" "GPU architectures that kernels are compiled for, such as 80 or 90a")
  isotope_add_fatbins("${isotope_option_CUDA_ARCHS}")
endfunction()

# The bytes of all device code are compiled once, too.
function(isotope_cuda_compiled)
  target_link_libraries(isotope_fatbin_bytes PRIVATE isotope_own)
  foreach(precision IN LISTS isotope_cuda_PRECISIONS)
    if(TARGET isotope_cuda_${precision})
      target_link_libraries(isotope_cuda_${precision} PUBLIC isotope_fatbin_bytes)
    endif()
  endforeach()
endfunction()

# A package has the device code of one architecture, isotope-cuda-90a, or of several, isotope-cuda-fat. The driver, which programs open when they start, comes
# from NVIDIA under a name that depends on the system.
macro(isotope_cuda_package)
  string(REPLACE "," ";" isotope_package_suffix "${CUDA_ARCHS}")
  list(LENGTH isotope_package_suffix isotope_package_archs)
  if(isotope_package_archs GREATER 1)
    set(isotope_package_suffix fat)
  endif()
  string(PREPEND isotope_package_suffix "-")
  set(isotope_package_deb "Suggests=libcuda1")
endmacro()
