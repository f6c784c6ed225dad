#pragma once
// The arguments of cross_entropy.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

struct cross_entropy_operands {
  std::uint64_t logits;   // (rows, N); the first V of each row are classes
  std::uint64_t targets;  // (rows) i32
  std::uint64_t tops;     // (rows) f32: the largest logit
  std::uint64_t sums;     // (rows) f32: of e^(logit - top)
  std::uint64_t losses;   // (rows) f32; 0 for rows that do not count
  std::uint64_t factor;   // () f32: dloss / rows that count
  std::uint64_t dlogits;  // (rows, N), in the format of the logits
  std::int64_t rows;
  std::int32_t N, V, pieces, wide;  // pieces: blocks of a row
  std::int32_t all, first;          // of the gradient: targets are classes of `all`, of which column 0 is class `first`
};

struct counted_rows_operands {
  std::uint64_t targets;  // (rows) i32
  std::uint64_t x;        // (rows) f32 losses, 0 in rows that do not count; or dloss, () f32
  std::uint64_t y;        // () f32
  std::int64_t rows;
  std::int32_t V, gradient;
};

}  // namespace isotope::cuda::gpu
