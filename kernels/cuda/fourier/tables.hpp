#pragma once
/// Tables of the Fourier transforms, computed in f64 and rounded once.
#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

#include <isotope/kernels/cuda/portable/fft.h>
#include <isotope/backend/cuda/launch.hpp>

namespace isotope::cuda::fourier_tables {

using complex = std::complex<double>;

/// A table and the memory that it takes.
struct kept_table {
  gpu::fft_table table{};
  std::int64_t bytes = 0;
  operator range() const { return {table.at, bytes}; }
};

/// e^(-2 pi i t / D), t <= D, computed from an angle within a quarter turn.
inline complex root(std::int64_t t, std::int64_t D) {
  const std::int64_t quarter = 4 * t / D;
  const double angle = 1.5707963267948966 * double(4 * t - quarter * D) / double(D);
  complex w{std::cos(angle), -std::sin(angle)};
  for (std::int64_t q = 0; q < quarter; ++q) w = {w.imag(), -w.real()};
  return w;
}
inline void append(std::vector<float>& words, complex w) {
  words.push_back(float(w.real()));
  words.push_back(float(w.imag()));
}
inline kept_table keep(recording& r, const std::vector<float>& words, int bits) {
  return {{r.keep(std::span<const float>(words)), bits}, std::int64_t(4 * words.size())};
}

/// The table of all D-th roots of unity: all of them up to D = 8192 (64 KiB), otherwise as many small angles as large ones, 16 sqrt(D) bytes.
inline kept_table circle(recording& r, std::int64_t D) {
  constexpr std::int64_t most = 8192;
  int bits = 0;
  if (D > most)
    while ((std::int64_t(1) << (2 * bits)) < D) ++bits;
  std::vector<float> words;
  if (bits > 0)
    for (std::int64_t t = 0; t < (std::int64_t(1) << bits); ++t) append(words, root(t, D));
  for (std::int64_t t = 0; t < D; t += std::int64_t(1) << bits) append(words, root(t, D));
  return keep(r, words, bits);
}
/// to[k] = sum_j from[j stride] e^(-2 pi i j k / n), n a power of two.
inline void transform(const complex* from, std::int64_t stride, complex* to, std::int64_t n) {
  if (n == 1) {
    *to = *from;
    return;
  }
  const std::int64_t m = n / 2;
  transform(from, 2 * stride, to, m);
  transform(from + stride, 2 * stride, to + m, m);
  for (std::int64_t k = 0; k < m; ++k) {
    const complex even = to[k], w = root(k, n), x = to[k + m];
    const complex odd{w.real() * x.real() - w.imag() * x.imag(), w.real() * x.imag() + w.imag() * x.real()};
    to[k] = even + odd;
    to[k + m] = even - odd;
  }
}
/// The transform, of M points, of the conjugate chirp e^(pi i n^2 / N), |n| < N, divided by M: the inverse transform divides by M, and
/// dividing here keeps numbers near the end of the range from overflowing on the way.
inline kept_table chirp_spectrum(recording& r, std::int64_t N, std::int64_t M) {
  std::vector<complex> x(static_cast<std::size_t>(M)), y(x.size());
  for (std::int64_t n = 0; n < N; ++n) x[std::size_t(n)] = x[std::size_t(n == 0 ? 0 : M - n)] = std::conj(root(n * n % (2 * N), 2 * N));
  transform(x.data(), 1, y.data(), M);
  std::vector<float> words;
  for (const complex& w : y) append(words, w / double(M));
  return keep(r, words, 0);
}

}  // namespace isotope::cuda::fourier_tables
