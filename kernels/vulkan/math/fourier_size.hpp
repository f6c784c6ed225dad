#pragma once
/// How many points a Fourier transform computes, in how many passes, and how much scratch memory that takes.
#include <cstdint>

namespace isotope::vulkan {

struct fourier_size {
  static constexpr std::int64_t log_most = 12;                   // log2 of the points that a workgroup transforms
  static constexpr std::uint32_t shared_bytes = 8u << log_most;  // needed by such a workgroup
  static constexpr std::int64_t slab_bytes = std::int64_t(32)
                                             << 20;  // size of the rows between passes: they stay in the cache of a large device
  std::int64_t points, rows;
  bool bins;               // real rows whose bins take their own dispatch if there are several passes
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
  /// Returns log2 of the radix of a pass: passes share the factors of M evenly, the first ones take the rest.
  constexpr std::int64_t log_radix(std::int64_t pass) const { return (log_m + passes() - 1 - pass) / passes(); }

  constexpr std::int64_t row_bytes() const { return 8 * M(); }
  /// Returns the number of buffers: a pass does not write where it reads.
  constexpr std::int64_t buffers() const { return convolved() || bins || passes() > 2 ? 2 : 1; }
  constexpr std::int64_t slab_rows() const {
    const std::int64_t n = slab_bytes / (buffers() * row_bytes());
    return n < 1 ? 1 : n < rows ? n : rows;
  }
  constexpr std::int64_t buffer_bytes() const { return slab_rows() * row_bytes(); }
  constexpr std::int64_t spectrum_bytes() const { return convolved() ? row_bytes() : 0; }
  constexpr std::int64_t scratch() const { return at_once() || rows == 0 ? 0 : spectrum_bytes() + buffers() * buffer_bytes(); }
};

}  // namespace isotope::vulkan
