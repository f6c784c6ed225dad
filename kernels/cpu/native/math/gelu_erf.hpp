#pragma once
/// y = x Phi(x) with Phi(x) = (1 + erf(x / sqrt 2)) / 2, and its derivative Phi(x) + x phi(x), phi the normal density, all in f32.
///
/// With a = |x| and E = e^(-a^2/2): Phi(-a) = m E P / (a P + D) and Phi(-a) - a phi(a) = E (root - a) Q / (s Q + F). m and 1 / s are about 1 / sqrt(2
/// pi), P and Q have degree 4 and first coefficient 1, and D and F are small beside the other term where a is large, so that the roundings of P and Q
/// cancel. The coefficients are a weighted least-squares fit of the relative error on 0 <= a <= 15 (Lawson's weights), each rounded before the others
/// were fitted again: within 2^-26.2 and 2^-24.3, after the first one of F was moved against the bias of the roundings. The factor (root - a) keeps
/// anything else from cancelling near the root.
/// E needs a^2/2 to 2^-25 absolute, where f32 holds it to 2^-18, so a^2 is held in two numbers.
/// Source: Hendrycks & Gimpel 2016, arXiv:1606.08415, the form used by BERT.
#include <isotope/kernels/cpu/native/math/gate.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise {

/// e^(-a^2/2) for 0 <= a <= 15 as power (1 + rest) / One.
template <float One> struct density {
  vector power, rest;
  explicit ISOTOPE_INLINE density(vector a) {
    constexpr float step = 1.38671875f, step_low = -4.243888801e-4f;  // 2 ln 2
    constexpr rest_terms terms(-0.5);
    constexpr float quartic[] = {-0.5f, 0.125f, -0.020833334f, 0.0026041667f};  // e^(-r/2) by Taylor
    const vector square = a * a, square_low = madd(a, a, -square);
    const vector shifted = madd(square, all(-0.72134752f), all(steps::shift)), k = shifted - steps::shift;
    const vector r = madd(k, all(step), square) + madd(k, all(step_low), square_low);  // the first term is exact
    power = power_of_steps<One>(shifted);
    if constexpr (lanes < 16) rest = r * polynomial(r, quartic);  // the cubic would be off by 2^-25
    else rest = r * polynomial(r, terms.c);
  }
  /// x e^(-a^2/2) One 2^-64, rounded twice.
  ISOTOPE_INLINE vector times(vector x) const {
    const vector y = x * power * 0x1p-64f;
    return madd(y, rest, y);
  }
};

/// Error: 4 ULP. gelu(-inf) = -0 (the limit), gelu(inf) = inf; NaN is kept.
ISOTOPE_INLINE vector gelu_erf(vector x) {
  constexpr float m = 0x1.988554p-2f, p[] = {118.9757309f, 104.8437042f, 44.0097847f, 9.806687355f};
  constexpr float d0 = 94.92980957f, d[] = {40.42131042f, 9.986394882f, 0.9874684215f, 0.0006328047602f};
  const vector a = at_most(magnitude(x), 15.0f), ap = a * monic(a, p);  // gelu -15 rounds to -0
  // max(x, 0) - a Phi(-a): at most half of the terms cancels
  return at_least(x, -0.0f) - density<m * 0x1p64f>(a).times(ap / (madd(a, polynomial(a, d), ap) + d0));
}

/// Error: 4 ULP or 2^-23, whichever is more, since the root at -0.7518 is rounded to f32. 0 at -inf, 1 at inf; NaN is kept.
ISOTOPE_INLINE vector gelu_erf_derivative(vector x) {
  constexpr float s = 2.50661563873f, q[] = {63.00843048f, 71.57972717f, 35.9824295f, 9.133302689f};
  constexpr float f[] = {-63.19950485f, -46.63308334f, -14.71782303f, -1.883709908f};
  constexpr float root = 0.751791536808f;
  const vector a = at_most(magnitude(x), 15.0f), qa = monic(a, q);
  const vector at_minus_a = density<0x1p64f>(a).times((root - a) * qa / madd(qa, all(s), polynomial(a, f)));
  return x < 0.0f ? at_minus_a : 1.0f - at_minus_a;
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise
