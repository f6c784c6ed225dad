#pragma once
/// What kernels may know of the device that they are recorded for.
#include <cstdint>
#include <string>
#include <vector>

#include "../../core/precision.hpp"

namespace isotope::vulkan {

/// One entry of the device's cooperative matrix list: an MxK times KxN product at subgroup scope.
struct matrix_shape {
  std::uint32_t m = 0, n = 0, k = 0;
  dtype type = dtype::bf16, accumulator = dtype::f32;  // of A and B; of C and the result
};

/// Switches that change which kernels run; programs fill them from flags and ISOTOPE_* variables.
struct kernel_switches {
  bool no_matrix_units = false;        // never use cooperative matrices
  bool no_f16_matrices = false;        // nor those of f16 operands
  bool no_workgroup_matrices = false;  // never use VK_NV_cooperative_matrix2
  std::uint32_t split_k = 0;           // 0: chosen by size
  // Products of f16 weights and f32 activations, which matrix units take rounded to f16.
  float oscillation_threshold = 0.35f;  // weights that oscillate more keep f32 activations
  bool no_auto_wide = false;            // whatever the weights
  bool force_wide = false;              // never round activations
  std::int32_t launch_size = -1;        // invocations of workgroups that leave it open; -1: what the kernels choose
};

struct device_limits {
  std::uint32_t subgroup = 32, least_subgroup = 32, most_subgroup = 32;  // sizes that pipelines may require lie between the last two
  std::uint32_t workgroup_subgroups = 32;                                // in a workgroup whose pipeline requires a size, at most
  std::uint32_t shared_bytes = 32768;
  std::uint32_t invocations = 1024;    // of a workgroup
  std::uint32_t multiprocessors = 64;  // where the device tells
  bool float16 = false;                // f16 arithmetic
  bool matrix2 = false;                // VK_NV_cooperative_matrix2 at workgroup scope
  std::vector<matrix_shape> matrices;
  kernel_switches switches;
  std::string distrusted;  // why matrix units are not used though they are there: what the self-test found

  const matrix_shape* matrix(dtype t) const {
    if (!distrusted.empty() || switches.no_matrix_units || (switches.no_f16_matrices && t == dtype::f16)) return nullptr;
    for (const auto& m : matrices)
      if (m.type == t && m.accumulator == dtype::f32) return &m;
    return nullptr;
  }
};

}  // namespace isotope::vulkan
