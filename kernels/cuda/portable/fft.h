#pragma once
// The operands of fft.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

inline constexpr int fft_log_most = 12;  // log2 of the points that a block transforms

enum fft_source : int { from_pairs, from_numbers, from_half_bins, from_bins, from_chirp };
enum fft_target : int { to_pairs, to_numbers, to_half_bins, to_bins, to_spectrum };

/// A table of e^(-2 pi i t / D): every t if bits is 0; otherwise 2^bits small angles, then D / 2^bits large ones.
struct fft_table {
  std::uint64_t at;
  std::int32_t bits;
};

struct fft_operands {
  std::uint64_t x, y;                        // (rows, in_row), (rows, out_row) pairs or numbers
  std::uint64_t roots;                       // (4096) e^(-2 pi i t / 4096)
  std::uint64_t spectrum;                    // (2^log_m): of the chirp
  fft_table circle;                          // D = 2 points
  fft_table twiddles;                        // D = 2^log_m, for passes over columns
  float x_inner, x_outer, y_inner, y_outer;  // factors of inner and outer bins that are read, that are written
  std::int64_t rows, in_row, out_row;
  std::int32_t points;        // of the requested transform
  std::int32_t given, kept;   // points of a row that are read (the rest is 0), that are written
  std::int32_t log_m;         // of a row
  std::int32_t log_s;         // points of the result that earlier passes over columns have combined
  std::int32_t log_r, log_c;  // a block transforms 2^log_r points in 2^log_c columns
  std::int32_t source, target, x_type, y_type;
  bool x_aligned, y_aligned;  // pairs are aligned to their size
  bool swap_in, swap_out;     // for the inverse: swap in the first and in the last pass
  bool chirp_in, chirp_out;   // before the first pass of a convolution, after its last
  bool convolve;              // the whole convolution runs in this block
};

struct fft_bins_operands {
  std::uint64_t x;   // (rows, h) pairs of f32
  std::uint64_t y;   // (rows, h + 1) pairs
  fft_table circle;  // D = 2 h
  std::int64_t rows;
  float inner, outer;
  std::int32_t h, y_type;
  bool y_aligned;
};

}  // namespace isotope::cuda::gpu
