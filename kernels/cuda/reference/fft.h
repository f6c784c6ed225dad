#pragma once
// Arguments of reference/fft.cu.
#include <cstdint>

namespace isotope::cuda::gpu {

inline constexpr int fourier_complex = 0, fourier_from_real = 1, fourier_to_real = 2;

struct reference_fft_arguments {
  std::uint64_t x;      // (rows, in_row) pairs, or numbers where the form is fourier_from_real
  std::uint64_t y;      // (rows, out_row) pairs, or numbers where it is fourier_to_real
  std::uint64_t roots;  // (N) pairs f64: e^(-2 pi i t / N)
  std::int64_t rows, in_row, out_row, N;
  double inner, outer;  // factors of inner and outer bins
  double direction;     // -1: e^(-2 pi i n k / N)
  std::int32_t form, x_type, y_type;
};

}  // namespace isotope::cuda::gpu
