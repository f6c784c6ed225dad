#pragma once
/// y = e^x, and the pieces of e^x that tanh, sigmoid, silu and gelu are made of.
///
/// x = k ln 2 + r with |r| <= ln 2 / 2, e^r by a polynomial (Chebyshev interpolation of (e^r - 1 - r) / r^2), times 2^k.
/// In f32 the scale is applied in two factors, so that results below 2^-126 round once and k = 128 does not overflow early.
#include <isotope/kernels/cpu/math/arithmetic.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math {

/// e^x = 2^k (1 + expm1_r), for |x| < 2^21. The polynomial is within 2^-27 of e^r.
struct split_exp {
  std::int32_t k;
  float expm1_r;
};
ISOTOPE_INLINE split_exp split(float x) {
  constexpr float round = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits
  constexpr float c[] = {0.5f, 0.16666576305560638f, 0.041666553762567638f, 0.0083632927530306023f, 0.0013926325618133462f};
  const float shifted = madd(x, 1.44269504f, round);
  const float k = shifted - round;
  const float r = madd(k, 2.12194440e-4f, madd(k, -0.693359375f, x));  // k 0.693359375 is exact
  const auto integer = std::int32_t(std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(round));
  return {integer, madd(r * r, polynomial(r, c), r)};
}

/// Error: 1.25 ULP. +-inf, NaN, overflow and subnormal results are right.
ISOTOPE_INLINE float exp(float x) {
  const split_exp e = split(bounded(x, 105.0f));
  const std::int32_t half = e.k >> 1;
  return keep_nan((1.0f + e.expm1_r) * power_of_two(half) * power_of_two(e.k - half), x);
}

/// e^x in f64 for |x| <= 700, NaN for NaN: for functions whose f32 result needs intermediate values more precise than f32.
/// Error: 2^-32 relative with Terms = 6, 2^-51 with Terms = 10.
template <int Terms> ISOTOPE_INLINE double exp_within_700(double x) {
  static_assert(Terms == 6 || Terms == 10);
  constexpr double round = 0x1.8p52;
  constexpr double short_c[] = {0.50000000136201386764,  0.16666666681794625246,   0.041666463386339526929,
                                0.008333310754576892517, 0.0013933820489776019292, 0.0001989118015828214244};
  constexpr double long_c[] = {0.50000000000000010417,   0.16666666666666667468,    0.041666666666623476764,    0.0083333333333300117609,
                               0.0013888888917538295848, 0.00019841269863303223296, 0.000024801520792572692843, 2.7557268072890098263e-6,
                               2.762032742826823816e-7,  2.5100569275813682631e-8};
  const double shifted = madd(x, 1.4426950408889634, round);
  const double k = shifted - round;
  const double r = madd(k, -1.90821492927058770002e-10, madd(k, -6.93147180369123816490e-01, x));  // the first product is exact
  double p;
  if constexpr (Terms == 6) {
    p = polynomial(r, short_c);
  } else {
    p = polynomial(r, long_c);
  }
  const auto scale = std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) << 52) + 0x3ff0'0000'0000'0000u);
  return madd(r * r, p, r) * scale + scale;
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math
