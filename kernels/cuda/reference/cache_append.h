#pragma once
// Arguments of reference/cache_append.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

struct reference_cache_append_arguments {
  std::uint64_t keys, values;        // (B, G, T, D)
  std::uint64_t k, v;                // (N, G D)
  std::uint64_t sequence, position;  // (N) i32
  std::int64_t k_stride, v_stride;   // of rows, in elements
  std::int64_t N, B, G, T, D;
  std::int32_t type;  // of all but sequence and position
};

}  // namespace isotope::cuda::gpu
