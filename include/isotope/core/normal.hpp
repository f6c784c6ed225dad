#pragma once
/// Normal random numbers from random words, in f64 arithmetic that compilers vectorise. It calls no libm, and the flags of isotope::isotope forbid fused
/// multiply-adds, so the bits are the same on every machine.
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "compiler.hpp"

namespace isotope::normal {

/// u = (w + 1/2) / 2^32, in (0, 1): exact.
ISOTOPE_INLINE double open_interval(std::uint32_t w) { return (double(w) + 0.5) * 0x1p-32; }

/// Evaluates a polynomial by Horner's rule; c holds the highest coefficient first.
template <int n> ISOTOPE_INLINE double polynomial(double x, const double (&c)[n]) {
  double r = c[0];
  for (int k = 1; k < n; ++k) r = r * x + c[k];
  return r;
}

/// ln u for 2^-33 <= u < 1. u = 2^e m with sqrt(1/2) <= m < sqrt(2), ln m = 2 artanh(s), s = (m - 1) / (m + 1), |s| < 0.172: the series of artanh to
/// s^23 leaves 2^-60. Error below 2^-50 |ln u| + 2^-52.
ISOTOPE_INLINE double log_of_unit(double u) {
  constexpr std::uint64_t sqrt_half = 0x3fe6'a09e'667f'3bcd, mantissa = (std::uint64_t(1) << 52) - 1, two_to_52 = 0x4330'0000'0000'0000;
  constexpr double series[] = {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13,
                               1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
  const std::uint64_t t =
      std::bit_cast<std::uint64_t>(u) - sqrt_half + (std::uint64_t(64) << 52);  // the exponent, 64 too large: not negative
  const double e = std::bit_cast<double>((t >> 52) | two_to_52) - (0x1p52 + 64);
  const double m = std::bit_cast<double>((t & mantissa) + sqrt_half);
  const double s = (m - 1) / (m + 1);
  return e * std::numbers::ln2 + 2 * s * polynomial(s * s, series);
}

struct point {
  double cos, sin;
};
/// (cos, sin)(2 pi u) for 0 < u < 1. Quarter turns are exact; the remaining angle is at most pi/4 and goes into the series up to x^16. Error below 2^-51.
ISOTOPE_INLINE point on_circle(double u) {
  constexpr double even[] = {
      1 / 20922789888000.0, -1 / 87178291200.0, 1 / 479001600.0, -1 / 3628800.0, 1 / 40320.0, -1 / 720.0, 1 / 24.0, -1 / 2.0, 1};
  constexpr double odd[] = {-1 / 1307674368000.0, 1 / 6227020800.0, -1 / 39916800.0, 1 / 362880.0, -1 / 5040.0, 1 / 120.0, -1 / 6.0, 1};
  const double turns = 4 * u, shifted = turns + 0x1.8p52;  // its last bits: the nearest number of quarter turns
  const auto quarter = std::bit_cast<std::uint64_t>(shifted);
  const double x = (turns - (shifted - 0x1.8p52)) * (std::numbers::pi / 2), x2 = x * x;
  const double c = polynomial(x2, even), s = x * polynomial(x2, odd);
  const bool swapped = (quarter & 1) != 0;
  const std::uint64_t cos_sign = ((quarter + 1) & 2) << 62, sin_sign = (quarter & 2) << 62;
  return {std::bit_cast<double>(std::bit_cast<std::uint64_t>(swapped ? s : c) ^ cos_sign),
          std::bit_cast<double>(std::bit_cast<std::uint64_t>(swapped ? c : s) ^ sin_sign)};
}

/// Two independent numbers of mean 0 and variance 1: sqrt(-2 ln u0) (cos, sin)(2 pi u1), u = (w + 1/2) / 2^32.
///
/// Source: Box & Muller 1958, "A note on the generation of random normal deviates".
ISOTOPE_INLINE point pair(std::uint32_t w0, std::uint32_t w1) {
  const double length = std::sqrt(-2 * log_of_unit(open_interval(w0)));
  const point p = on_circle(open_interval(w1));
  return {length * p.cos, length * p.sin};
}

}  // namespace isotope::normal
