#pragma once
// Arguments of reference/attention_packed.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

struct packed_attention_arguments {
  std::uint64_t q, k, v;                                // (N, H D)
  std::uint64_t starts;                                 // (B + 1) i32
  std::uint64_t y;                                      // (N, H D)
  std::int64_t q_stride, k_stride, v_stride, y_stride;  // of rows, in elements
  std::int64_t N, B, H, D;
  double scale;
  std::int32_t causal;
  std::int32_t type;  // of q, k, v and y
};

}  // namespace isotope::cuda::gpu
