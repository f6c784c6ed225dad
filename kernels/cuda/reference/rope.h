#pragma once
// Arguments of reference/rope.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

struct reference_rope_arguments {
  std::uint64_t x, y;       // (B, S, H, 2, pairs)
  std::uint64_t positions;  // (S) i32; 0: the table is of positions
  std::uint64_t table;      // (S, pairs, 2) f64: cosines and sines; with positions (pairs) f64: radians per position
  std::int64_t count;       // pairs in all
  std::int64_t S, H, pairs;
  std::int64_t rotated;  // heads from this one on are copied
  double direction;
  std::int32_t x_type, y_type;
};

}  // namespace isotope::cuda::gpu
