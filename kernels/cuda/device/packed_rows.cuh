#pragma once
// Where the rows of packed sequences lie.
#include "access.cuh"

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

/// Rows that a block of threads owns: rows `first` to end - 1 of the tensor are a sequence, or lie before the first or behind the last one;
/// the block owns those from first + own on, at most ROWS.
struct packed_place {
  std::int64_t first, end, own;
  bool outside;  // the rows belong to no sequence

  __device__ bool empty() const { return first + own >= end; }
};
/// The place of block `index` of packed sequences, of which there are rows / ROWS + sequences + 2 at most. Each sequence has blocks of its own, which begin at its first row, so
/// results do not depend on where it lies. With v counting the rows before the first sequence as 0 and those behind the last one too, the
/// blocks of v begin at first_row(v) / ROWS + v: a sequence needs at most as many as there are up to the next one. All threads of a warp call
/// this: 32 numbers are compared at a time.
template <int ROWS>
__device__ inline packed_place place_of_packed(std::uint64_t starts, std::int64_t sequences, std::int64_t rows, std::int64_t index) {
  const auto first_row = [&](std::int64_t v) { return v == 0 ? 0 : start_of(starts, v - 1, rows); };
  std::int64_t low = 0, high = sequences + 2;  // the blocks of low begin at or before the block, those of high after it
  while (high - low > 1) {
    const std::int64_t step = (high - low + 31) / 32, v = low + std::int64_t(threadIdx.x % 32 + 1) * step;
    const bool before = v < high && first_row(v) / ROWS + v <= index;
    low += __popc(__ballot_sync(0xffffffffu, before)) * step;
    high = high < low + step ? high : low + step;
  }
  const std::int64_t first = first_row(low), end = low == sequences + 1 ? rows : first_row(low + 1);
  return {first, end, (index - first / ROWS - low) * ROWS, low == 0 || low == sequences + 1};
}

}  // namespace isotope::cuda::gpu
