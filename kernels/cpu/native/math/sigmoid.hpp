#pragma once
/// y = 1 / (1 + e^-x); x sigmoid(x) and its derivative.
#include <isotope/kernels/cpu/native/math/gate.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise {

/// Error: 3 ULP, also for subnormal results. sigmoid(-inf) = 0, sigmoid(inf) = 1; NaN is kept.
ISOTOPE_INLINE vector sigmoid(vector x) {
  constexpr float one = free_unit * 0x1p-64f;
  return one / (multiple_of_exp<one>(-at_least(at_most(x, 42.0f), -105.0f)) + one);  // e^-42 is negligible beside 1
}

/// Error: 4 ULP. silu(-inf) = -0 (the limit), silu(inf) = inf; NaN is kept.
ISOTOPE_INLINE vector silu(vector x) {
  const vector a = at_most(magnitude(x), 128.0f);  // silu -128 rounds to -0
  return gate(x, a, multiple_of_exp<large_one>(-a));
}
/// Error: 4 ULP or 2^-23, whichever is more: near the root at -1.278 the terms 1 + e^x and -x cancel. -0 at -inf, 1 at inf; NaN is kept.
ISOTOPE_INLINE vector silu_derivative(vector x) {
  const vector v = at_least(at_most(x, 42.0f), -128.0f);
  return gate_derivative(v, multiple_of_exp<small_one>(-v));
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise
