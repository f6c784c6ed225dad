#pragma once
// Sizes of matmul_rows_normed_hopper.cu.

namespace isotope::cuda::gpu {

/// Warps of a block, and K: each warp has a part of it.
inline constexpr int matmul_rows_normed_warps = 8, matmul_rows_normed_depth = 768;
/// Shared memory of a block: sums of the warps, moments of rows, and two constants of columns.
constexpr int matmul_rows_normed_bytes(int rows, int columns) {
  return matmul_rows_normed_warps * (rows * (columns + 4) * 4 + 8 * rows + 8 * columns);
}

}  // namespace isotope::cuda::gpu
