#pragma once
/// gelu_erf for bf16 operands and results: within 2^-15, 1/128 of the rounding to bf16, with half of the instructions.
///
/// With vectors of 16 lanes y = x 2^q, q = log2 Phi(x) by pieces: within 2^-16.3. A Xeon with AMX takes 6.0 ns a vector, 4.8 for each of four in step, where
/// the other form took 7.3, and an EPYC (Zen 4) 5.5, 4.4 and 5.5. The tanh form in this way takes 6.0 in place of 6.9, and 5.8 in place of 5.0. Elsewhere y = max(x, 0) - a Phi(-a)
/// with a = |x| and Phi(-a) = e^(-a^2/2) P(a) / Q(a), P of degree 2 and Q of degree 3 by a weighted least-squares fit of the relative error on 0 <= a
/// <= 13.4, where results become zero (Lawson's weights): within 2^-15.4. Operands have 8 bits, so a^2 is exact and the exponent, up to 163, is off by one rounding.
#include <isotope/kernels/cpu/native/math/gelu_tanh_bf16.hpp>
#include <isotope/kernels/cpu/native/math/power_in_pieces.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise {

/// log2 Phi(x) for -14.7 <= x <= 4.5.
struct log2_normal {
  static constexpr float width = 0.6f;
  static constexpr int last = 7;
  static constexpr double exponent(double x) {
    using e = at_compile_time;
    const double a = x < 0 ? -x : x, density = 0.39894228040143267794 * e::exp(-a * a / 2);
    if (a < 2) {  // Phi(x) = 1/2 + density (x + x^3/3 + x^5/(3 5) + ...)
      double term = x, sum = x;
      for (int k = 3; k < 40; k += 2) sum += term *= x * x / k;
      return e::ln(0.5 + density * sum) / e::ln2;
    }
    double below = a;  // Phi(-a) = density / (a + 1/(a + 2/(a + 3/...)))
    for (int k = 40; k > 0; --k) below = a + k / below;
    return x > 0 ? e::ln(1 - density / below) / e::ln2 : -(a * a / 2 + e::ln(below * 2.5066282746310005024)) / e::ln2;
  }
};

/// gelu(-inf) = -0 (the limit), gelu(inf) = inf; NaN is kept.
ISOTOPE_INLINE vector gelu_erf_bf16(vector x) {
  if constexpr (has_pieces) return times_power<log2_normal>(x);
  constexpr float p[] = {8.050563f, 4.4644885f}, q[] = {16.100754f, 21.787132f, 11.275273f, 2.50363f};
  constexpr int scale = 64;                       // e^(-a^2/2) may be 2^-163
  const vector a = at_most(magnitude(x), 15.0f);  // gelu -15 rounds to -0
  const vector e = short_decay<scale>(a * a * 0.72134752f);
  return at_least(x, -0.0f) - a * e * (monic(a, p) / polynomial(a, q)) * 0x1p-64f;  // at most half of the terms cancels
}
/// The same of several vectors.
template <std::size_t N> ISOTOPE_INLINE void gelu_erf_bf16(vector (&x)[N]) {
  if constexpr (has_pieces) return times_power<log2_normal>(x);
  for (vector& v : x) v = gelu_erf_bf16(v);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise
