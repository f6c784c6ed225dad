#pragma once
/// What a Vulkan device is told when it is opened.
#include <cstdint>
#include <vector>

#include "../../core/gpu_options.hpp"

namespace isotope::vulkan {

/// A specialization constant of shaders: its number and its value.
struct shader_constant {
  std::uint32_t id = 0, value = 0;
};

/// `validate` loads VK_LAYER_KHRONOS_validation; `no_workgroup_matrices` leaves VK_NV_cooperative_matrix2 alone, the other switches of matrices
/// VK_KHR_cooperative_matrix.
struct diagnostics : gpu_diagnostics {
  std::vector<shader_constant> constants = {};  // given to every pipeline beside its own, for kernels that were built to read them
};
using options = basic_device_options<diagnostics>;

}  // namespace isotope::vulkan
