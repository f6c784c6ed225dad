# Any GPU with Vulkan 1.3, and llvmpipe on none. Building needs a GLSL compiler and the Vulkan headers, neither a driver nor a GPU.
isotope_find_shader_tools()
isotope_backend(
  RANK 1
  PRECISIONS f32 bf16
  DEFAULT_PRECISION f32
  USABLE "${isotope_shader_tools_found}"
  REASON "a GLSL compiler and the Vulkan headers are here")
