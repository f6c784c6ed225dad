#pragma once
/// The options of a Vulkan device.
#include <cstdint>
#include <vector>

#include "../../core/gpu_options.hpp"

namespace isotope::vulkan {

/// A specialization constant of shaders: its id and its value.
struct shader_constant {
  std::uint32_t id = 0, value = 0;
};

/// `validate` loads VK_LAYER_KHRONOS_validation; `no_workgroup_matrices` turns off VK_NV_cooperative_matrix2, the other switches of matrix units
/// VK_KHR_cooperative_matrix.
struct diagnostics : gpu_diagnostics {
  std::vector<shader_constant> constants = {};  // additional constants of every pipeline, for kernels that were built to read them
  /// The workgroups of the one dispatch that a step of decoding of one row is: they wait for each other, so all must run at once. 0: such a step has a dispatch for
  /// each product; -1: one for each multiprocessor where the driver is known to run them so, otherwise 0.
  std::int32_t step_workgroups = -1;
};
using options = basic_device_options<diagnostics>;

}  // namespace isotope::vulkan
