#pragma once
// Arguments of reference/attention_cached.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

struct cached_attention_arguments {
  std::uint64_t q;                   // (N, H D)
  std::uint64_t keys, values;        // (B, G, T, D)
  std::uint64_t sequence, position;  // (N) i32
  std::uint64_t y;                   // (N, H D)
  std::int64_t q_stride, y_stride;   // of rows, in elements
  std::int64_t N, B, H, G, T, D;     // H heads, G key-value heads
  std::int64_t window;               // most keys that a query sees; 0: no window
  double scale;
  std::int32_t q_type, cache_type, y_type;
};

}  // namespace isotope::cuda::gpu
