#pragma once
// Shared memory of matmul_rows_hopper.cu: a barrier, then elements of B, in whose place sums come later.

namespace isotope::cuda::gpu {

/// Where the elements of B begin, and bytes between columns of B: so many that eight threads read 16 bytes each of two columns from different banks, if K is a
/// multiple of 64.
inline constexpr int matmul_rows_hopper_first = 128, matmul_rows_hopper_pad = 64;

}  // namespace isotope::cuda::gpu
