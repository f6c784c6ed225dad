#pragma once
/// y = erf x.
#include <isotope/kernels/cpu/math/exp.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math {

/// Error: 2 ULP. erf(+-0) = +-0, erf(+-inf) = +-1; NaN is kept. Below 0.9 it is x + x P(x^2), within 2^-31; above, 1 - e^-Q(|x|), Q the
/// logarithm of 1 - erf, within 2^-27. From 4 on it rounds to 1. Both polynomials are Chebyshev interpolations.
ISOTOPE_INLINE float erf(float x) {
  constexpr float p[] = {0.12837917f, -0.37612635f, 0.11283718f, -0.026860666f, 0.0052042268f, -0.00081796321f, 8.5294014e-5f};
  constexpr float q[] = {-0.00031853965f, 1.130231f,       0.6318239f,    0.11008716f,   -0.026427638f,
                         0.0047626258f,   -0.00059758575f, 4.6163859e-5f, -1.6430637e-6f};
  const float a = bounded(magnitude(x), 4.0f);
  const split_exp e = split(-polynomial(a, q));
  const float above = 1.0f - power_of_two(e.k) * (1.0f + e.expm1_r);
  return keep_nan(with_sign(select(mask_less(a, 0.9f), madd(a, polynomial(a * a, p), a), above), x), x);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math
