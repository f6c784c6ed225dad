#pragma once
/// How many points a Fourier transform computes, in how many passes, and how much scratch memory that takes.
#include <cstdint>

#include <isotope/kernels/cuda/portable/fft.h>

namespace isotope::cuda {

struct fourier_size {
  static constexpr std::int64_t log_most = gpu::fft_log_most;
  static constexpr std::int64_t slab_bytes = std::int64_t(32)
                                             << 20;  // of the rows between passes: they stay in the cache of a large device
  static constexpr std::int64_t most_points = std::int64_t(1)
                                              << 28;  // of a row: device code counts the points of a convolution with 32 bits
  std::int64_t points, rows;
  bool bins;               // real rows whose bins take a launch of their own if there are several passes
  std::int64_t log_m = 0;  // M: the points, or the size of their convolution with a chirp

  constexpr fourier_size(std::int64_t N, std::int64_t number, bool real_bins) : points(N), rows(number), bins(real_bins) {
    while (M() < N) ++log_m;
    if (M() != N)
      while (M() < 2 * N - 1) ++log_m;
  }
  constexpr std::int64_t M() const { return std::int64_t(1) << log_m; }
  constexpr bool convolved() const { return M() != points; }
  constexpr bool at_once() const { return log_m <= log_most; }
  constexpr std::int64_t passes() const { return (log_m + log_most - 1) / log_most; }
  /// log2 of the radix of a pass: passes share the factors of M evenly, the first ones take the rest.
  constexpr std::int64_t log_radix(std::int64_t pass) const { return (log_m + passes() - 1 - pass) / passes(); }

  constexpr std::int64_t row_bytes() const { return 8 * M(); }
  /// The number of buffers: a pass does not write where it reads.
  constexpr std::int64_t buffers() const { return convolved() || bins || passes() > 2 ? 2 : 1; }
  constexpr std::int64_t slab_rows() const {
    const std::int64_t n = slab_bytes / (buffers() * row_bytes());
    return n < 1 ? 1 : n < rows ? n : rows;
  }
  constexpr std::int64_t buffer_bytes() const { return slab_rows() * row_bytes(); }
  constexpr std::int64_t spectrum_bytes() const { return convolved() ? row_bytes() : 0; }
  constexpr std::int64_t scratch() const { return at_once() || rows == 0 ? 0 : spectrum_bytes() + buffers() * buffer_bytes(); }
};

}  // namespace isotope::cuda
