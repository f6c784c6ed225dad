#pragma once
/// e^x for softmax weights. What is below 2^-125 is zero, so that masked scores cost no subnormal arithmetic.
#include <isotope/kernels/cpu/native/math/exp.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace native::lanewise {

/// e^x for x <= 88, 0 below -87. Error: 1.25 ULP. NaN stays NaN.
ISOTOPE_INLINE vector weight(vector x) {
  const power e = power_of_e(x);
  const vector scale = power_of_two(e.shifted);
  return x < -87.0f ? all(0.0f) : madd(e.p, scale, scale);
}

}  // namespace native::lanewise
}  // namespace arch
}  // namespace isotope::cpu
