#pragma once
/// y = tanh x = (e^2x - 1) / (e^2x + 1), from e^2x - 1 = (S - 1) + S (e^2r - 1) with S a power in steps of 2^(1 / lanes).
///
/// S - 1 has few correct bits relative to S, so the rounding error of S is looked up, too, and added to e^2r - 1.
#include <isotope/kernels/cpu/native/math/power.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise {

/// Error: 3.5 ULP. tanh(+-0) = +-0, tanh(+-inf) = +-1; NaN is kept.
ISOTOPE_INLINE vector tanh(vector x) {
  constexpr float step = 0.3466796875f, step_low = -1.0609722e-4f;  // ln 2 / 2
  constexpr float c[] = {2.0f, 2.0f, 1.3333334f, 0.66666667f};      // (e^2r - 1) / r, with errors below 2^-29 (16 lanes) or 2^-25 (8)
  constexpr steps::table lacking = steps::lacking_of(1.0f);
  const vector a = at_most(magnitude(x), 10.0f);  // tanh 10 rounds to 1
  const vector shifted = madd(a, all(2.88539008f), all(steps::shift)), k = shifted - steps::shift;
  const vector r = madd(k, all(-step_low), madd(k, all(-step), a));
  const vector power = power_of_steps<1.0f>(shifted), rest = madd(r, polynomial(r, c), from_bits(look_up(lacking, bits(shifted))));
  const vector expm1 = madd(power, rest, power - 1.0f);
  return with_sign(expm1 / (expm1 + 2.0f), x);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise
