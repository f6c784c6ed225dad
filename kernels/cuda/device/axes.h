#pragma once
// Tensors as kernels receive them; included by host and device code. Offsets are 64-bit, so a tensor may have more than 2^31 elements.
#include <cstdint>

namespace isotope::cuda::gpu {

inline constexpr int max_axes = 6;

/// The axes of a tensor, outermost first. Strides count elements.
struct axes {
  std::int64_t dims[max_axes];
  std::int64_t strides[max_axes];
  std::int32_t rank;
};
/// A strided tensor: the address of its first element, its format (the number of a dtype) and its axes.
struct tensor {
  std::uint64_t at;
  std::int32_t type;
  gpu::axes axes;
};

}  // namespace isotope::cuda::gpu
