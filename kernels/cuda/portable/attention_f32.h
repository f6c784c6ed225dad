#pragma once
// The tiles of attention in f32 with large register tiles; included by host and device code.
#include "../attention/heads.h"

namespace isotope::cuda::gpu {

/// The work of one block: each warp owns 4 `rows` rows, queries or keys, and the block walks tiles of 8 `columns` rows of the other side. A
/// thread computes rows x columns scores and rows x D / 8 results.
struct attention_f32_tile {
  int D, warps, rows, columns;

  static constexpr int part = 32;  // weights of an own row that are in shared memory at a time
  constexpr int threads() const { return 32 * warps; }
  constexpr int own() const { return 4 * rows * warps; }
  constexpr int other() const { return 8 * columns; }
  constexpr int row_bytes() const { return 4 * (D + 4); }
  constexpr int weight_bytes() const { return 4 * own() * (part + 8); }
  /// Own queries, keys and values, and weights.
  constexpr int forward_bytes() const { return row_bytes() * (own() + 2 * other()) + weight_bytes(); }
  /// Two operands of both sides, weights, and two values beside each row of the other side.
  constexpr int gradient_bytes() const { return row_bytes() * 2 * (own() + other()) + weight_bytes() + 8 * other(); }
};

/// The head sizes that kernels are compiled for; other multiples of four run in the next larger one.
inline constexpr int attention_f32_sizes[] = {32, 64, 96, 128};

// A block owns 64 rows. With tiles of 8 x 8 and 128 rows per block, causal attention with 1,024 keys took 1.1 to 1.2 times as long, since
// more of the work at the diagonal is wasted. Three blocks fit a multiprocessor with 227 KB of shared memory where heads have up to 64
// elements, two in the kernel for queries and with wider heads.
template <int D> struct f32_forward_tile {
  static constexpr attention_f32_tile value{D, 4, 4, 8};
};
template <int D> struct f32_queries_tile {
  static constexpr attention_f32_tile value{D, 4, 4, D > 64 ? 4 : 8};
};
template <int D> struct f32_keys_tile {
  static constexpr attention_f32_tile value{D, 4, 4, 4};
};

}  // namespace isotope::cuda::gpu
