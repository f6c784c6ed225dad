#pragma once
/// y = x sigmoid(x), and y = d(x sigmoid(x))/dx = s (1 + x (1 - s)) with s = sigmoid(x).
///
/// Computed in f64 and rounded once: x e^x for very negative x and the derivative near its root need more precision than f32, and f64 needs no
/// select. Bound by the f64 division.
/// Source: Elfwing, Uchibe & Doya 2017, arXiv:1702.03118.
#include <isotope/kernels/cpu/math/sigmoid.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math {

/// Error: 1 ULP. silu(-inf) = -0 (the limit), silu(inf) = inf; NaN is kept.
ISOTOPE_INLINE float silu(float x) {
  const float above = bounded_below(x, 128.0f);  // where silu rounds to -0
  const double v = bounded(x, 128.0f);
  return keep_nan(float(double(above) / (1.0 + exp_within_700<6>(-v))), x);
}

/// Error: 1 ULP, also near the root at -1.278. 0 at -inf, 1 at inf; NaN is kept.
ISOTOPE_INLINE float silu_derivative(float x) {
  const double v = bounded(x, 128.0f);
  const double e = exp_within_700<10>(-v), s = 1.0 / (1.0 + e);
  return keep_nan(float(s * madd(v * e, s, 1.0)), x);  // e s = 1 - s without cancellation
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math
