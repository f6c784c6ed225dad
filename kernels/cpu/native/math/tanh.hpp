#pragma once
/// y = tanh x = (e^2x - 1) / (e^2x + 1), by the steps of cpu/math/tanh.hpp.
#include <isotope/kernels/cpu/native/math/exp.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace native::lanewise {

/// Error: 3 ULP. tanh +-0 = +-0, tanh +-inf = +-1, NaN stays NaN.
ISOTOPE_INLINE vector tanh(vector x) {
  const power e = power_of_e(2.0f * at_most(magnitude(x), 10.0f));  // tanh 10 rounds to 1
  const vector scale = power_of_two(e.shifted), expm1 = madd(scale, e.p, scale - 1.0f);
  return with_sign(expm1 / (expm1 + 2.0f), x);
}

}  // namespace native::lanewise
}  // namespace arch
}  // namespace isotope::cpu
