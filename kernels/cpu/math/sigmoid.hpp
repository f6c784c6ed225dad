#pragma once
/// y = 1 / (1 + e^-x).
#include <isotope/kernels/cpu/math/exp.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math {

/// Error: 2.5 ULP, also for subnormal results. sigmoid(-inf) = 0, sigmoid(inf) = 1; NaN is kept.
ISOTOPE_INLINE float sigmoid(float x) {
  const float e = exp(-magnitude(x));  // never overflows
  return select(mask_sign(x), e, 1.0f) / (1.0f + e);
}
inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

/// y[i] = sigmoid x[i]; y may be x.
template <class T> void sigmoid(const T* x, T* y, std::int64_t n) {
  map(n, y, [](auto v) ISOTOPE_INLINE_LAMBDA { return sigmoid(v); }, x);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math
