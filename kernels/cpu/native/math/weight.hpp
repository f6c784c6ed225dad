#pragma once
/// e^x for softmax weights. Results below 2^-125 become zero, so that masked scores cost no subnormal arithmetic.
#include <isotope/kernels/cpu/native/math/power.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise {

/// e^x for x <= 88, 0 below -87. Error: 1.5 ULP. NaN is kept.
ISOTOPE_INLINE vector weight(vector x) { return x < -87.0f ? all(0.0f) : multiple_of_exp<1.0f>(x); }

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise
