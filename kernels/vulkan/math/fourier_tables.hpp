#pragma once
/// Tables of the Fourier transforms, computed in f64 and rounded once.
#include <cmath>
#include <cstdint>
#include <vector>

#include <isotope/backend/vulkan/launch.hpp>

namespace isotope::vulkan {

/// The address of a table, and log2 of the number of its small angles: fourier.glsl.
struct fourier_table {
  std::uint64_t at = 0;
  std::int64_t bytes = 0;
  std::uint32_t bits = 0;
  operator range() const { return {at, bytes}; }
};

namespace fourier_tables {

struct complex {
  double re = 0, im = 0;
};
constexpr complex operator*(complex a, complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

/// Returns the twiddle factor e^(-2 pi i t / D), t <= D, computed from an angle within a quarter turn.
inline complex twiddle(std::int64_t t, std::int64_t D) {
  const std::int64_t quarter = 4 * t / D;
  const double angle = 1.5707963267948966 * double(4 * t - quarter * D) / double(D);
  complex w{std::cos(angle), -std::sin(angle)};
  for (std::int64_t q = 0; q < quarter; ++q) w = {w.im, -w.re};
  return w;
}
inline void append(std::vector<float>& words, complex w) {
  words.push_back(float(w.re));
  words.push_back(float(w.im));
}
inline fourier_table kept(recording& r, const std::vector<float>& words, std::uint32_t bits) {
  return {r.keep(std::span<const float>(words)), std::int64_t(4 * words.size()), bits};
}

/// Records the table of all D-th twiddle factors: all of them up to D = 8192 (64 KiB), otherwise as many small angles as large ones, 16 sqrt(D)
/// bytes.
inline fourier_table circle(recording& r, std::int64_t D) {
  constexpr std::int64_t most = 8192;
  std::uint32_t bits = 0;
  if (D > most)
    while ((std::int64_t(1) << (2 * bits)) < D) ++bits;
  std::vector<float> words;
  if (bits > 0)
    for (std::int64_t t = 0; t < (std::int64_t(1) << bits); ++t) append(words, twiddle(t, D));
  for (std::int64_t t = 0; t < D; t += std::int64_t(1) << bits) append(words, twiddle(t, D));
  return kept(r, words, bits);
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
    const complex even = to[k], odd = twiddle(k, n) * to[k + m];
    to[k] = {even.re + odd.re, even.im + odd.im};
    to[k + m] = {even.re - odd.re, even.im - odd.im};
  }
}
/// The transform, of M points, of the conjugate chirp e^(pi i n^2 / N), |n| < N, divided by M: the inverse transform divides by M, and dividing here
/// keeps numbers near the end of the range from overflowing on the way.
inline fourier_table chirp_spectrum(recording& r, std::int64_t N, std::int64_t M) {
  std::vector<complex> x(std::size_t(M), complex{}), y(std::size_t(M), complex{});
  for (std::int64_t n = 0; n < N; ++n) {
    const complex c = twiddle(n * n % (2 * N), 2 * N);
    x[std::size_t(n)] = x[std::size_t(n == 0 ? 0 : M - n)] = {c.re, -c.im};
  }
  transform(x.data(), 1, y.data(), M);
  std::vector<float> words;
  for (const complex& w : y) append(words, {w.re / double(M), w.im / double(M)});
  return kept(r, words, 0);
}

}  // namespace fourier_tables
}  // namespace isotope::vulkan
