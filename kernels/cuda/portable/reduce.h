#pragma once
// The operands of reduce.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

/// Reduces pieces of rows.
struct row_operands {
  std::uint64_t x, y;     // (rows, pitch), n elements of a row; (rows, pieces)
  std::int64_t results;   // rows pieces
  std::int64_t n, pitch;  // pitch: elements from one row to the next
  std::int64_t each;      // elements of a piece, at most 2^30
  std::int32_t pieces, team, wide, y_type;
  float terms;                // divides the results if it is not 0
  std::int32_t least, place;  // of extrema: the smallest element; y is i32, the index of the first of equals
};

}  // namespace isotope::cuda::gpu
