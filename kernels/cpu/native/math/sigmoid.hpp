#pragma once
/// y = 1 / (1 + e^-x); x sigmoid(x) and its derivative.
#include <isotope/kernels/cpu/native/math/gate.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace native::lanewise {

/// Error: 2.5 ULP, subnormal results included. sigmoid -inf = 0, sigmoid inf = 1, NaN stays NaN.
ISOTOPE_INLINE vector sigmoid(vector x) { return gate(all(1.0f), x, power_of_e(-at_most(magnitude(x), 105.0f))); }

/// Error: 3 ULP. silu -inf = -0 (the limit), silu inf = inf, NaN stays NaN.
ISOTOPE_INLINE vector silu(vector x) {
  return gate(at_least(x, -128.0f), x, power_of_e(-at_most(magnitude(x), 128.0f)));  // silu -128 rounds to -0
}
/// Error: 4 ULP or 2^-23, whichever is more: beside its root at -1.278 the terms 1 + e^x and -x cancel. -0 at -inf, 1 at inf, NaN stays NaN.
ISOTOPE_INLINE vector silu_derivative(vector x) {
  const vector a = at_most(magnitude(x), 128.0f);
  return gate_derivative(a, x, power_of_e(-a));
}

}  // namespace native::lanewise
}  // namespace arch
}  // namespace isotope::cpu
