#pragma once
/// The steps that the element functions are made of. All are branch-free, so that a loop over them becomes vector code.
///
/// Each rounds in one way only, in a vector body, in its tail and alone: `madd` is fused exactly where the target has the instruction, and
/// plain products and sums are never contracted (the targets of this library set -ffp-contract=off). Bits may differ between architectures.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <isotope/core/config.hpp>

static_assert(!isotope::config::fast_math,
              "isotope's cpu kernels need IEEE arithmetic, this file is compiled with -ffast-math. fix: remove -ffast-math (or -Ofast)");

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace math {

/// a b + c, rounded once where the target has a fused multiply-add, twice elsewhere.
template <class T> ISOTOPE_INLINE T madd(T a, T b, T c) {
  if constexpr (config::has_fma) {
    return std::fma(a, b, c);
  } else {
    return a * b + c;
  }
}

/// c[0] + c[1] x + ... + c[N-1] x^(N-1), by Horner's rule.
template <class T, std::size_t N> ISOTOPE_INLINE T polynomial(T x, const T (&c)[N]) {
  T y = c[N - 1];
#pragma GCC unroll 16
  for (std::size_t i = N - 1; i > 0; --i) y = madd(y, x, c[i - 1]);
  return y;
}

/// The smaller or larger of x and a bound; NaN stays NaN.
template <class T> ISOTOPE_INLINE T at_most(T x, T bound) { return x > bound ? bound : x; }
template <class T> ISOTOPE_INLINE T at_least(T x, T bound) { return x < bound ? bound : x; }

ISOTOPE_INLINE float magnitude(float x) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0x7fff'ffffu); }
/// y >= 0 with the sign of x.
ISOTOPE_INLINE float with_sign(float y, float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(y) | (std::bit_cast<std::uint32_t>(x) & 0x8000'0000u));
}
/// 2^k for -126 <= k <= 127.
ISOTOPE_INLINE float power_of_two(std::int32_t k) { return std::bit_cast<float>(std::uint32_t(k + 127) << 23); }

}  // namespace math
}  // namespace arch
}  // namespace isotope::cpu
