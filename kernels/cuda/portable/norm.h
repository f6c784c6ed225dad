#pragma once
// The arguments of norm.cu and norm_grad.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

/// Columns of a row that a thread holds in norm.cu.
inline constexpr int norm_elems = 16;
/// A warp takes whole rows of up to 256, 512, 768 and 1,024 columns, a kernel for each: `rows` at a time. `blocks`: how many of 256 threads a
/// multiprocessor has, which go on with further rows; 0: as many as there are rows.
struct norm_short_size {
  int rows, blocks;
};
inline constexpr int norm_short_columns = 1024, norm_short_step = 256;
inline constexpr norm_short_size norm_short_of_f32[] = {{2, 4}, {2, 2}, {1, 0}, {1, 0}},
                                 norm_short_of_16_bits[] = {{2, 6}, {2, 4}, {1, 0}, {1, 0}};

/// Threads of the largest block of norm_grad.cu that holds several teams, and rows that each of them takes at a time.
struct norm_grad_size {
  int threads, rows_at_once;
};
inline constexpr norm_grad_size norm_grad_of_f32{256, 4}, norm_grad_of_16_bits{288, 2};
/// Columns of the longest rows whose dx norm_grad_sums adds up: of 16 bits, 384 threads hold them, and more threads would have too few registers.
inline constexpr int norm_grad_sums_columns = 3072;

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
  std::uint64_t partial;  // (parts, centered ? 2 : 1, C) f32: dweight, dbias; one more, the sums of dx, of norm_grad_sums
  std::int64_t rows, parts;
  std::int32_t C, weight_type, centered, wide;
  std::int32_t team;  // threads of a row
};

}  // namespace isotope::cuda::gpu
