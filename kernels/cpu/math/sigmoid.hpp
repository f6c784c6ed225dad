#pragma once
/// y = 1 / (1 + e^-x).
#include <isotope/kernels/cpu/math/exp.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math {

/// Error: 2.5 ULP, also for subnormal results. sigmoid(-inf) = 0, sigmoid(inf) = 1; NaN is kept.
ISOTOPE_INLINE float sigmoid(float x) {
  const float e = exp(-magnitude(x));  // never overflows
  return select(mask_sign(x), e, 1.0f) / (1.0f + e);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math
