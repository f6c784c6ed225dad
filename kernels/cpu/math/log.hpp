#pragma once
/// y = ln x.
///
/// x = 2^e m with sqrt(1/2) <= m < sqrt(2), f = m - 1: ln x = e ln 2 + f - f^2/2 + f^3 Q(f), Q by Chebyshev interpolation to 2^-25.
#include <isotope/kernels/cpu/math/arithmetic.hpp>
#include <isotope/kernels/cpu/math/map.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math {

/// The coefficients of Q.
inline constexpr float log_terms[] = {0.33333331180030048f,  -0.24999996957950882f, 0.20000715748892102f,
                                      -0.16667802319501255f, 0.14249057645697480f,  -0.12425687331451106f,
                                      0.11685419923486739f,  -0.11479733846637636f, 0.069716114514711578f};

/// Error: 1 ULP. ln(+-0) = -inf, ln(inf) = inf, NaN below zero; subnormal numbers are handled.
ISOTOPE_INLINE float log(float x) {
  constexpr std::uint32_t sqrt_half = 0x3f35'04f3u, one = 0x3f80'0000u, infinity = 0x7f80'0000u;
  const std::uint32_t subnormal = mask_negative(bits(x) - 0x0080'0000u);  // all ones for negative numbers, too
  const std::uint32_t t = bits(x * from_bits(one + (subnormal & (23u << 23)))) - sqrt_half;
  const auto e = float((std::int32_t(t) >> 23) - std::int32_t(subnormal & 23u));
  const float f = from_bits((t & 0x7f'ffffu) + sqrt_half) - 1.0f, f2 = f * f;
  const float tail = madd(-0.5f, f2, madd(e, -2.12194440e-4f, f * f2 * polynomial(f, log_terms)));
  const float finite = madd(e, 0.693359375f, f + tail);  // e 0.693359375 is exact
  const std::uint32_t zero = mask_zero(x), huge = mask_negative(infinity - 1u - (bits(x) & 0x7fff'ffffu));
  const float y = select(zero, -from_bits(infinity), select(huge, x, finite));
  return from_bits(bits(y) | (mask_sign(x) & ~zero));
}

/// y[i] = ln x[i]; y may be x.
template <class T> void log(const T* x, T* y, std::int64_t n) {
  map(n, y, [](auto v) ISOTOPE_INLINE_LAMBDA { return log(v); }, x);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math
