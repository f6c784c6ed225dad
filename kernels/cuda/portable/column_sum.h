#pragma once
// The arguments of column_sum.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

/// Threads of a block.
inline constexpr int column_threads = 512;

struct column_sum_operands {
  std::uint64_t x, y;
  std::uint64_t second;            // receives the columns from `split` on, or 0
  std::uint64_t third;             // receives the columns from 2 `split` on, or 0
  std::uint64_t partial;           // (batch, chunks, cols) f32; not used if there is one chunk
  std::uint64_t counters;          // (batch, strips) u32: finished chunks of a strip, 0 before and after a launch
  std::int64_t rows, cols, pitch;  // of x; pitch: elements from one row to the next
  std::int64_t each;               // rows of a chunk
  std::int64_t x_batch, y_batch;   // elements from one z to the next
  std::int64_t split;
  std::int32_t across;  // vectors that a block takes across, a power of two
  std::int32_t wide;    // whether all columns are in whole, aligned vectors
  std::int32_t y_type;
  float terms;  // divides the sums if it is not 0
};

}  // namespace isotope::cuda::gpu
