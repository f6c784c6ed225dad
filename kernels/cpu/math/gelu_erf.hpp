#pragma once
/// y = x Phi(x) with Phi(x) = (1 + erf(x / sqrt 2)) / 2, and its derivative Phi(x) + x phi(x), phi the normal density.
///
/// With a = |x|, E = e^(-a^2/2) and s = 1 / (1 + 0.3 a): Phi(-a) = E s R(s) and Phi(-a) - a phi(a) = E (root - a) H(s). R and H are polynomials
/// (Chebyshev interpolation on 0 <= a <= 15, within 2^-26). The factor (root - a) keeps the derivative accurate near its root.
/// Computed in f64, because E of an f32 argument would lose a^2/2 ULP.
/// Source: Hendrycks & Gimpel 2016, arXiv:1606.08415, the form used by BERT.
#include <isotope/kernels/cpu/math/exp.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math {

/// 1 / (1 + 0.3 a) for a >= 0, within 2^-45, from an f32 division and one Newton step: cheaper than an f64 division.
ISOTOPE_INLINE double inverse_of_one_plus(float a) {
  const double guess = 1.0f / madd(0.3f, a, 1.0f);
  return guess * madd(-madd(0.3, double(a), 1.0), guess, 2.0);
}

/// Error: 1 ULP. gelu(-inf) = -0 (the limit), gelu(inf) = inf; NaN is kept.
ISOTOPE_INLINE float gelu_erf(float x) {
  constexpr double c[] = {0.11968775022811919,  0.11955011827807899, 0.11042319661479691,  0.077485770647012285, 0.098830841310834298,
                          -0.08448128252487109, 0.19792164407388667, -0.23283548305322593, 0.11440211186287312,  -0.020984669361051224};
  const float a = bounded(magnitude(x), 15.0f);
  const double s = inverse_of_one_plus(a), a2 = double(a) * double(a);
  const double below = exp_within_700<6>(-0.5 * a2) * (s * polynomial(s, c));  // Phi(-a)
  const double side = with_sign(1.0f, x), phi = madd(-side, below, 0.5 + 0.5 * side);
  return keep_nan(float(double(bounded_below(x, 15.0f)) * phi), x);
}

/// Error: 1 ULP, also near the root at -0.7518. 0 at -inf, 1 at inf; NaN is kept.
ISOTOPE_INLINE float gelu_erf_derivative(float x) {
  constexpr double root = 0.7517915246935644574579049;
  constexpr double c[] = {0.3989467865432115,    0.089868972706973814, 0.075470103771254891,  0.048776295293526852, 0.058666436600411286,
                          -0.039765034377589609, 0.090697099430721778, -0.087865843608473877, 0.035804069708716303, -0.005520890757445683};
  const float a = bounded(magnitude(x), 15.0f);
  const double s = inverse_of_one_plus(a), a2 = double(a) * double(a);
  const double below = exp_within_700<6>(-0.5 * a2) * ((root - double(a)) * polynomial(s, c));  // the derivative at -a
  const double side = with_sign(1.0f, x);
  return keep_nan(float(madd(-side, below, 0.5 + 0.5 * side)), x);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math
