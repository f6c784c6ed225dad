#pragma once
// The arguments of norm.cu and norm_grad.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

/// Columns of a row that a thread holds in norm.cu.
inline constexpr int norm_elems = 16;
/// Columns of rows that a warp takes whole, and how many of these rows it takes at a time, or one of more than 16 columns of f32 per lane.
inline constexpr int norm_short_columns = 1024, norm_short_rows = 2;

/// Threads of the largest block of norm_grad.cu that holds several teams, and rows that each of them takes at a time.
inline constexpr int norm_grad_threads = 256, norm_grad_rows_at_once = 4;

struct norm_operands {
  std::uint64_t x, weight, bias;  // (rows, C), (C), (C); no bias if not centered
  std::uint64_t y;                // (rows, C), in the format of x
  std::uint64_t means, rstds;     // (rows) f32; no means if not centered
  std::int64_t rows;
  std::int32_t C, team;  // team: threads of a row
  std::int32_t weight_type, bias_type;
  std::int32_t centered, wide, held;
  float epsilon;
};

struct norm_grad_operands {
  std::uint64_t x, weight, means, rstds, dy, dx;  // (rows, C), (C), (rows) f32, (rows) f32, (rows, C), (rows, C)
  std::uint64_t addend;                           // (rows, C) in the format of x, or 0
  std::uint64_t partial;                          // (parts, centered ? 2 : 1, C) f32: dweight, dbias
  std::int64_t rows, parts;
  std::int32_t C, weight_type, centered, wide;
  std::int32_t team;  // threads of a row
};

}  // namespace isotope::cuda::gpu
