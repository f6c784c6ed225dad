#pragma once
/// What silu and gelu share: y = x / (1 + e^-t(x)) with t odd, and its derivative. They take multiples of exponentials that stay in range.
#include <isotope/kernels/cpu/native/math/power.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise {

inline constexpr float large_one = free_unit * 0x1p64f, small_one = 0x1p-64f;

/// y = max(x, 0) - a e^-t / (1 + e^-t) with a = |x|, given large_one e^-t(a). At most half of the terms cancels. y = -0 where x is -0 or -inf.
ISOTOPE_INLINE vector gate(vector x, vector a, vector e) { return at_least(x, -0.0f) - a * e / (e + large_one); }

/// y' = s (1 + z (1 - s)) with s = 1 / (1 + e^-t) and z = x t'(x), given small_one e^-t(x).
ISOTOPE_INLINE vector gate_derivative(vector z, vector e) {
  const vector q = 1.0f / (e + small_one);
  return madd(z, e * q, all(1.0f)) * q * small_one;
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise
