#pragma once
/// The device limits and features that kernels may depend on when they are recorded.
#include <cstdint>
#include <string>
#include <vector>

#include "../../core/precision.hpp"

namespace isotope::vulkan {

/// One entry of the device's list of cooperative matrices: an MxK by KxN matmul at subgroup scope.
struct matrix_shape {
  std::uint32_t m = 0, n = 0, k = 0;
  dtype type = dtype::bf16, accumulator = dtype::f32;  // formats of A and B, and of C and the result
};

/// Switches that change which kernels run. Programs set them from flags and ISOTOPE_* variables.
struct kernel_switches {
  bool no_matrix_units = false;        // never use cooperative matrices
  bool no_f16_matrices = false;        // never use cooperative matrices of f16 operands
  bool no_workgroup_matrices = false;  // never use VK_NV_cooperative_matrix2
  std::uint32_t split_k = 0;           // into how many parts matmuls split K; 0: chosen by size
  // The next three are for matmuls of f16 weights and f32 activations, where matrix units need the activations rounded to f16.
  float oscillation_threshold = 0.35f;  // activations stay f32 if the weight's oscillation is above this
  bool no_auto_wide = false;            // round activations regardless of the weight's oscillation
  bool force_wide = false;              // never round activations
  std::int32_t launch_size = -1;        // invocations per workgroup where a kernel allows any number; -1: the kernel's own choice
  std::string variant = {};             // of kernels that have one whose name begins so; empty: the fastest by estimate
};

struct device_limits {
  std::uint32_t subgroup = 32, least_subgroup = 32, most_subgroup = 32;  // the size used; the range that pipelines may require
  std::uint32_t workgroup_subgroups = 32;                                // most subgroups per workgroup of a pipeline that requires a size
  std::uint32_t shared_bytes = 32768;                                    // of a workgroup
  std::uint32_t invocations = 1024;                                      // most per workgroup
  std::uint32_t multiprocessors = 64;                                    // number of multiprocessors; 64 if the device does not report it
  std::uint32_t step_workgroups = 0;  // of a whole step of decoding, which wait for each other; 0: the device may not run as many at once
  bool float16 = false;               // f16 arithmetic
  bool matrix2 = false;               // VK_NV_cooperative_matrix2 at workgroup scope
  std::vector<matrix_shape> matrices;
  kernel_switches switches;
  std::string distrusted;  // why the self-test disabled the matrix units; empty: it did not

  const matrix_shape* matrix(dtype t) const {
    if (!distrusted.empty() || switches.no_matrix_units || (switches.no_f16_matrices && t == dtype::f16)) return nullptr;
    for (const auto& m : matrices)
      if (m.type == t && m.accumulator == dtype::f32) return &m;
    return nullptr;
  }
};

}  // namespace isotope::vulkan
