#pragma once
// The tiles of attention on tensor cores; included by host and device code.
#include <cstdint>

#include "../attention/heads.h"

namespace isotope::cuda::gpu {

/// The work of one block: each warp owns `strips` strips of 16 rows, and the block walks tiles of `columns` rows of the other side, two in
/// shared memory at a time.
struct attention_tile {
  int D, warps, strips, columns;
  int part = 32;  // rows of a tile whose scores a warp of a gradient kernel has in registers at a time

  constexpr int threads() const { return 32 * warps; }
  constexpr int rows() const { return 16 * strips * warps; }
  constexpr int row_bytes() const { return 2 * (D + 8); }
  /// Own queries or results, keys and values of two stages, and the bias of each key.
  constexpr int forward_bytes() const { return row_bytes() * (rows() + 4 * columns) + 4 * columns; }
  /// Two operands of its own rows and of two stages, and two values beside each row of the stages.
  constexpr int gradient_bytes() const { return row_bytes() * (2 * rows() + 4 * columns) + 16 * columns; }
};

/// The head sizes that kernels are compiled for; other multiples of eight run in the next larger one.
inline constexpr int attention_sizes_of_tiles[] = {32, 64, 80, 96, 128};

template <int D> struct forward_tile {
  static constexpr attention_tile value{D, 4, 1, 64};
};
/// Of packed sequences, which are often short: small tiles leave registers for six blocks of a multiprocessor.
template <int D> struct packed_tile {
  static constexpr attention_tile value{D, 4, 1, D == 32 ? 32 : 64};
};
template <int D> struct keys_tile {
  static constexpr attention_tile value{D, 4, 1, D > 96 ? 32 : 64};
};
template <int D> struct queries_tile {
  static constexpr attention_tile value{D, 4, 1, D > 96 ? 32 : 64};
};

/// The work of one block of the kernels for sm_90a, whose heads have 64 elements: each warpgroup owns 64 rows, and the block walks tiles of
/// `columns` rows of the other side, two in shared memory at a time.
struct attention_hopper_tile {
  int groups, columns;

  static constexpr int D = 64, row_bytes = 2 * D;
  constexpr int threads() const { return 128 * groups; }
  constexpr int rows() const { return 64 * groups; }
  constexpr int forward_bytes() const { return row_bytes * (rows() + 4 * columns) + 4 * columns; }
  constexpr int gradient_bytes() const { return row_bytes * (2 * rows() + 4 * columns) + 16 * columns; }
};
inline constexpr attention_hopper_tile hopper_forward_tile{1, 64}, hopper_queries_tile{1, 64}, hopper_keys_tile{1, 64};

}  // namespace isotope::cuda::gpu
