#pragma once
// The operands of rope.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

struct rope_operands {
  std::uint64_t x, y;       // (B, S, H, 2, pairs), in one format
  std::uint64_t positions;  // (S) i32; 0: the table is of positions
  std::uint64_t table;  // (S, pairs, 2) f32: cosines and sines; with positions (pairs) u64: the angle of one position in 2^-64 of a turn
  std::int64_t count;   // groups of four pairs in all, or of one pair if not wide
  std::int64_t S, H;
  std::int64_t rotated;  // heads from this one on are copied
  float direction;
  std::int32_t groups;  // of one head
  std::int32_t type, wide;
};

}  // namespace isotope::cuda::gpu
