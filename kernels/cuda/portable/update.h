#pragma once
// The arguments of update.cu, squares.cu and flat.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

/// Elements of a flat region that a thread takes.
inline constexpr int flat_elems = 4;

struct update_operands {
  std::uint64_t w, m, v, shadow, g;  // (count): moments are f32; no shadow: 0
  std::uint64_t norm, loss, scalars;
  std::int64_t count, decaying;  // the first elements decay
  std::int32_t w_type, shadow_type, g_type;
  std::int32_t clips, wide;  // clips: by the global norm
  float rate, size;          // factors on the learning rate and, of Muon, on the direction
};

struct clip_operands {
  std::uint64_t g, norm, scalars;  // norm: () f32, of clip_norm
  std::int64_t count;
  std::int32_t type, wide;
};

/// Sums of squares are f64.
struct squares_operands {
  std::uint64_t x, parts, norm, scalars;  // (count), (blocks) f64, () f32
  std::int64_t count, each;               // each: elements of a part, a multiple of 1,024
  std::int32_t type, wide, blocks;
};

struct flat_operands {
  std::uint64_t x, y;  // (count)
  std::int64_t count;
  std::int32_t x_type, y_type, add, wide;
};

}  // namespace isotope::cuda::gpu
