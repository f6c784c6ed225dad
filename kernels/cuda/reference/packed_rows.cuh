#pragma once
// Where the rows of packed sequences lie.
#include "../device/access.cuh"

namespace isotope::cuda::gpu {

/// Returns starts[b], or the nearest number in [0, rows].
__device__ inline std::int64_t start_of(std::uint64_t starts, std::int64_t b, std::int64_t rows) {
  const std::int64_t row = pointer<const std::int32_t>(starts)[b];
  return row < 0 ? 0 : row > rows ? rows : row;
}
/// Returns the last of `sequences` sequences that starts at or before a row; -1 if there is none.
__device__ inline std::int64_t sequence_at(std::uint64_t starts, std::int64_t sequences, std::int64_t rows, std::int64_t row) {
  std::int64_t low = -1, high = sequences;  // low starts at or before the row, high after it
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    if (start_of(starts, middle, rows) <= row) low = middle;
    else high = middle;
  }
  return low;
}

}  // namespace isotope::cuda::gpu
