#pragma once
/// gelu_erf for bf16 operands and results: within 2^-15, 1/128 of the rounding to bf16, with two thirds of the instructions.
///
/// y = max(x, 0) - a Phi(-a) with a = |x| and Phi(-a) = e^(-a^2/2) P(a) / Q(a), P of degree 2 and Q of degree 3 by a weighted least-squares fit of the
/// relative error on 0 <= a <= 13.4, where results become zero (Lawson's weights): within 2^-15.4. Operands have 8 bits, so a^2 is exact and the
/// exponent, up to 163, is off by one rounding.
#include <isotope/kernels/cpu/native/math/gelu_tanh_bf16.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise {

/// gelu(-inf) = -0 (the limit), gelu(inf) = inf; NaN is kept.
ISOTOPE_INLINE vector gelu_erf_bf16(vector x) {
  constexpr float p[] = {8.050563f, 4.4644885f}, q[] = {16.100754f, 21.787132f, 11.275273f, 2.50363f};
  constexpr int scale = 64;                       // e^(-a^2/2) may be 2^-163
  const vector a = at_most(magnitude(x), 15.0f);  // gelu -15 rounds to -0
  const vector e = short_decay<scale>(a * a * 0.72134752f);
  return at_least(x, -0.0f) - a * e * (monic(a, p) / polynomial(a, q)) * 0x1p-64f;  // at most half of the terms cancels
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise
