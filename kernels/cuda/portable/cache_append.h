#pragma once
// Arguments of portable/cache_append.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

struct cache_append_arguments {
  std::uint64_t keys, values;        // (B, G, T, D)
  std::uint64_t k, v;                // (N, G D)
  std::uint64_t sequence, position;  // (N) i32
  std::int64_t k_stride, v_stride;   // of rows, in units
  std::int64_t N, B, T;
  std::int32_t G, D;  // D: units of a head
};

}  // namespace isotope::cuda::gpu
