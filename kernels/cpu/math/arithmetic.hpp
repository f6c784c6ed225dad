#pragma once
/// The building blocks of the element functions. All are branch-free, so that a loop over them becomes vector code.
///
/// Each rounds the same way in a vector body, in its tail and alone: `madd` is fused exactly where the target has the instruction, and plain products
/// and sums are never contracted (the targets of this library set -ffp-contract=off). Bits may differ between architectures.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <isotope/core/compiler.hpp>

static_assert(!isotope::config::fast_math,
              "isotope's cpu kernels need IEEE arithmetic, this file is compiled with -ffast-math. fix: remove -ffast-math (or -Ofast)");

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math {

/// a b + c, rounded once where the target has a fused multiply-add, twice elsewhere.
template <class T> ISOTOPE_INLINE T madd(T a, T b, T c) {
  if constexpr (config::has_fma) {
    return std::fma(a, b, c);
  } else {
    return a * b + c;
  }
}

/// c[I] + c[I+1] x + ... + c[N-1] x^(N-1-I), by Horner's rule. It is a recursion because g++ -O2 does not unroll a loop this long.
template <std::size_t I = 0, class T, std::size_t N> ISOTOPE_INLINE T polynomial(T x, const T (&c)[N]) {
  if constexpr (I + 1 == N) {
    return c[I];
  } else {
    return madd(polynomial<I + 1>(x, c), x, c[I]);
  }
}

// Floats are not selected by the conditional operator: g++ would move arithmetic into its branches, where it might trap, and leave the loop scalar.
// Selections use masks on the bits, which order like signed integers for x >= 0 and like unsigned ones for x < 0.
ISOTOPE_INLINE std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
ISOTOPE_INLINE float from_bits(std::uint32_t u) { return std::bit_cast<float>(u); }
/// All ones if i < 0, else zero.
ISOTOPE_INLINE std::uint32_t mask_negative(std::uint32_t i) { return std::uint32_t(std::int32_t(i) >> 31); }
/// All ones where the sign bit of x is set (-0 and negative NaN too), where x is +-0, or where x is NaN.
ISOTOPE_INLINE std::uint32_t mask_sign(float x) { return mask_negative(bits(x)); }
ISOTOPE_INLINE std::uint32_t mask_zero(float x) { return mask_negative((bits(x) & 0x7fff'ffffu) - 1u); }
ISOTOPE_INLINE std::uint32_t mask_nan(float x) { return mask_negative(0x7f80'0000u - (bits(x) & 0x7fff'ffffu)); }
/// All ones if a < b; neither may be negative.
ISOTOPE_INLINE std::uint32_t mask_less(float a, float b) { return mask_negative(bits(a) - bits(b)); }
ISOTOPE_INLINE float select(std::uint32_t mask, float yes, float no) { return from_bits((bits(yes) & mask) | (bits(no) & ~mask)); }

ISOTOPE_INLINE float magnitude(float x) { return from_bits(bits(x) & 0x7fff'ffffu); }
/// y >= 0 with the sign of x.
ISOTOPE_INLINE float with_sign(float y, float x) { return from_bits(bits(y) | (bits(x) & 0x8000'0000u)); }
/// Return the larger of x and -bound, and x clamped to [-bound, bound]; bound > 0. NaN may become a bound: see keep_nan.
ISOTOPE_INLINE float bounded_below(float x, float bound) { return select(mask_less(bound, magnitude(x)) & mask_sign(x), -bound, x); }
ISOTOPE_INLINE float bounded(float x, float bound) { return select(mask_less(bound, magnitude(x)), with_sign(bound, x), x); }
/// y, or NaN if x is NaN.
ISOTOPE_INLINE float keep_nan(float y, float x) { return from_bits(bits(y) | mask_nan(x)); }
/// 2^k for -126 <= k <= 127.
ISOTOPE_INLINE float power_of_two(std::int32_t k) { return std::bit_cast<float>(std::uint32_t(k + 127) << 23); }

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math
