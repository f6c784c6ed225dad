# Any GPU with Vulkan 1.3; without a GPU, the driver llvmpipe runs on the processor. Building needs a GLSL compiler and the Vulkan headers, but no driver.
include(${CMAKE_CURRENT_LIST_DIR}/vulkan/shaders.cmake)
isotope_backend(
  RANK 1
  PRECISIONS f32 bf16
  DEFAULT_PRECISION f32
  REASON "a GLSL compiler and the Vulkan headers are here"
  PRESETS clang nightly asan)

function(isotope_vulkan_usable result)
  isotope_find_shader_tools()
  set(${result} FALSE PARENT_SCOPE)
  if(ISOTOPE_GLSLANG AND ISOTOPE_VULKAN_HEADERS)
    set(${result} TRUE PARENT_SCOPE)
  endif()
endfunction()

function(isotope_vulkan_configure)
  isotope_find_shader_tools()
  isotope_add_shaders()
endfunction()

# The words of the shader modules are compiled once, too.
function(isotope_vulkan_compiled)
  target_link_libraries(isotope_shader_words PRIVATE isotope_own)
  foreach(precision IN LISTS isotope_vulkan_PRECISIONS)
    target_link_libraries(isotope_vulkan_${precision} PUBLIC isotope_shader_words)
  endforeach()
endfunction()

# Programs open the loader when they start.
macro(isotope_vulkan_package)
  set(isotope_package_deb "Depends=libvulkan1" "Recommends=mesa-vulkan-drivers")
  set(isotope_package_rpm vulkan-loader)
endmacro()
