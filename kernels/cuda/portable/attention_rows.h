#pragma once
// The tiles of portable attention; included by host and device code.
#include "../attention/heads.h"

namespace isotope::cuda::gpu {

/// The work of one block of 256 threads: it owns `own` rows, queries or keys, and walks tiles of `other` rows of the other side. All rows
/// have D elements in f32. More rows mean more multiply-adds per read of shared memory, fewer let wide heads fit the 99 KB of the smallest
/// devices.
struct attention_rows_tile {
  int D, own, other;

  static constexpr int threads = 256;
  constexpr int row_bytes() const { return 4 * (D + 4); }
  constexpr int weight_bytes() const { return 4 * own * (other + 4); }
  constexpr int forward_bytes() const { return row_bytes() * (own + 2 * other) + weight_bytes(); }
  constexpr int gradient_bytes() const { return row_bytes() * 2 * (own + other) + weight_bytes(); }
};

/// The head sizes that kernels are compiled for; others run in the next larger one.
inline constexpr int attention_sizes_of_rows[] = {32, 64, 128, 256};

template <int D> struct forward_rows {
  static constexpr attention_rows_tile value{D, D > 128 ? 32 : 64, D > 128 ? 16 : D > 64 ? 32 : 64};
};
template <int D> struct gradient_rows {
  static constexpr attention_rows_tile value{D, D > 128 ? 16 : D > 64 ? 32 : 64, D > 128 ? 16 : D > 64 ? 32 : 64};
};

}  // namespace isotope::cuda::gpu
