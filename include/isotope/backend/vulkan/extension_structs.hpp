#pragma once
/// Structures of extensions that older Vulkan headers lack, with the layout that the specification gives.
#include "functions.hpp"

namespace isotope::vulkan {

struct cooperative_matrix_features {  // VkPhysicalDeviceCooperativeMatrixFeaturesKHR
  VkStructureType type = VkStructureType(1000506000);
  void* next = nullptr;
  VkBool32 cooperative_matrix = 0, robust_buffer_access = 0;
};
struct cooperative_matrix_properties {  // VkCooperativeMatrixPropertiesKHR
  VkStructureType type = VkStructureType(1000506001);
  void* next = nullptr;
  std::uint32_t m = 0, n = 0, k = 0;
  std::uint32_t a = 0, b = 0, c = 0, result = 0;  // VkComponentTypeKHR
  VkBool32 saturates = 0;
  std::uint32_t scope = 0;  // VkScopeKHR
};
struct bfloat16_features {  // VkPhysicalDeviceShaderBfloat16FeaturesKHR
  VkStructureType type = VkStructureType(1000141000);
  void* next = nullptr;
  VkBool32 bfloat16 = 0, dot_product = 0, cooperative_matrix = 0;
};
struct cooperative_matrix2_features {  // VkPhysicalDeviceCooperativeMatrix2FeaturesNV
  VkStructureType type = VkStructureType(1000593000);
  void* next = nullptr;
  VkBool32 workgroup_scope = 0, flexible_dimensions = 0, reductions = 0, conversions = 0, per_element = 0, tensor_addressing = 0,
           block_loads = 0;
};
struct multiprocessor_properties {  // VkPhysicalDeviceShaderSMBuiltinsPropertiesNV
  VkStructureType type = VkStructureType(1000154001);
  void* next = nullptr;
  std::uint32_t count = 0, subgroups_per_multiprocessor = 0;
};
using get_cooperative_matrices = VkResult(VKAPI_PTR*)(VkPhysicalDevice, std::uint32_t*, cooperative_matrix_properties*);

inline constexpr std::uint32_t component_f16 = 0, component_f32 = 1, component_bf16 = 1000141000;  // VkComponentTypeKHR
inline constexpr std::uint32_t scope_subgroup = 3;                                                 // VK_SCOPE_SUBGROUP_KHR

}  // namespace isotope::vulkan
