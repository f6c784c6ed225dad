#pragma once
/// e^x for softmax weights and gates: results below 2^-125 are zero, so that masked scores cost no subnormal arithmetic (150 clocks each).
#include <isotope/kernels/cpu/math/exp.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

/// e^x within 1.25 ULP for |x| <= 87; x beyond is clamped to that range, infinities included; NaN gives NaN.
ISOTOPE_INLINE float exp_within_87(float x) {
  const math::split_exp e = math::split(math::bounded(x, 87.0f));
  return math::keep_nan((1.0f + e.expm1_r) * math::power_of_two(e.k), x);
}
/// e^x, 0 below -87.
ISOTOPE_INLINE float weight(float x) {
  const std::uint32_t vanishes = math::mask_less(87.0f, math::magnitude(x)) & math::mask_sign(x) & ~math::mask_nan(x);
  return math::from_bits(math::bits(exp_within_87(x)) & ~vanishes);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable
