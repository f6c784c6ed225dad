#pragma once
/// y = tanh x = (e^2x - 1) / (e^2x + 1).
#include <isotope/kernels/cpu/math/exp.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math {

/// Error: 3 ULP. tanh(+-0) = +-0, tanh(+-inf) = +-1; NaN is kept.
/// e^2|x| - 1 is computed as 2^k (e^r - 1) + (2^k - 1), which cancels nothing for small x.
ISOTOPE_INLINE float tanh(float x) {
  const split_exp e = split(2.0f * bounded(magnitude(x), 10.0f));  // tanh 10 rounds to 1
  const float scale = power_of_two(e.k);
  const float expm1 = madd(scale, e.expm1_r, scale - 1.0f);
  return keep_nan(with_sign(expm1 / (expm1 + 2.0f), x), x);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math
