#pragma once
/// y = 0.5 x (1 + tanh(u)) = x / (1 + e^-2u) with u = sqrt(2/pi) (x + 0.044715 x^3), and its derivative.
///
/// Computed in f64 and rounded once: for negative x, e^-2u of f32 arguments loses 2u ULP, and the derivative near its root needs more precision than
/// f32. Bound by the f64 division.
/// Source: Hendrycks & Gimpel 2016, arXiv:1606.08415, the tanh form used by GPT-2.
#include <isotope/kernels/cpu/math/sigmoid.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math {

inline constexpr double gelu_slope = 1.5957691216057308;  // 2 sqrt(2/pi)
inline constexpr double gelu_cubic = 0.044715 * gelu_slope;

/// Error: 1 ULP. gelu(-inf) = -0 (the limit), gelu(inf) = inf; NaN is kept.
ISOTOPE_INLINE float gelu_tanh(float x) {
  const float above = bounded_below(x, 12.0f);  // where gelu rounds to -0
  const double v = bounded(x, 12.0f), u2 = v * madd(v * v, gelu_cubic, gelu_slope);
  return keep_nan(float(double(above) / (1.0 + exp_within_700<6>(-u2))), x);
}

/// s (1 + x (1 - s) du2) with s = 1 / (1 + e^-2u) and du2 = d(2u)/dx.
/// Error: 1 ULP, also near the root at -0.7525. 0 at -inf, 1 at inf; NaN is kept.
ISOTOPE_INLINE float gelu_tanh_derivative(float x) {
  const double v = bounded(x, 12.0f), v2 = v * v;
  const double e = exp_within_700<10>(-v * madd(v2, gelu_cubic, gelu_slope)), s = 1.0 / (1.0 + e);
  return keep_nan(float(s * madd(v * madd(v2, 3.0 * gelu_cubic, gelu_slope) * e, s, 1.0)), x);  // e s = 1 - s without cancellation
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math
