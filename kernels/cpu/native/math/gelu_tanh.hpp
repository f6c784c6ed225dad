#pragma once
/// y = 0.5 x (1 + tanh u) = x / (1 + e^-2u) with u = sqrt(2/pi) (x + 0.044715 x^3), and its derivative, all in f32.
///
/// e^-2u needs 2u to 2^-25 absolute, where 2u in f32 is off by up to 2^-18. 2u = C v with v = x (x^2 + K) and K = 1 / 0.044715 is held in two
/// numbers: K = high + low, `high` a multiple of 2^-16, so that (x^2 + high) - high is exact for |x| <= 11 (up to 2^8 in steps of 2^-16 at most).
/// Source: Hendrycks & Gimpel 2016, arXiv:1606.08415, the tanh form used by GPT-2.
#include <isotope/kernels/cpu/native/math/gate.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise {

struct gelu_cubic {
  static constexpr double C = 0.07135481627260025;                            // 0.044715 sqrt(8/pi)
  static constexpr float high = 0x1.65d26p4f, low = -1.081747996067861e-06f;  // K
  vector v, v_low;
  explicit ISOTOPE_INLINE gelu_cubic(vector x) {
    const vector sum = madd(x, x, all(high)), sum_low = madd(x, x, high - sum) + low;
    v = sum * x;
    v_low = madd(sum_low, x, madd(sum, x, -v));
  }
  /// Returns One e^-2u.
  template <float One> ISOTOPE_INLINE vector exp() const {
    constexpr float ratio = 0.10294323958002348f;                   // C log2 e
    constexpr float step = 9.7109375f, step_low = 0.003153528024f;  // ln 2 / C
    constexpr rest_terms terms(-C);
    const vector shifted = madd(v, all(-ratio), all(steps::shift)), k = shifted - steps::shift;
    const vector r = madd(k, all(step), v) + madd(k, all(step_low), v_low);  // the first term is exact
    return with_rest(power_of_steps<One>(shifted), r, terms);
  }
};

/// Error: 3.5 ULP. gelu(-inf) = -0 (the limit), gelu(inf) = inf; NaN is kept.
ISOTOPE_INLINE vector gelu_tanh(vector x) {
  const vector a = at_most(magnitude(x), 11.0f);  // gelu -11 rounds to -0
  return gate(x, a, gelu_cubic(a).exp<large_one>());
}

/// Error: 4 ULP or 2^-23, whichever is more: terms cancel near the root at -0.7525. -0 at -inf, 1 at inf; NaN is kept.
ISOTOPE_INLINE vector gelu_tanh_derivative(vector x) {
  const vector a = at_least(at_most(x, 6.5f), -11.0f);                            // e^-2u(6.5) = 2^-43
  constexpr float slope = 0.21406444881780075f, third_of_k = 7.454620000745462f;  // x (2u)' = slope x (x^2 + K / 3)
  const vector z = slope * a * madd(a, a, all(third_of_k));
  return gate_derivative(z, gelu_cubic(a).exp<small_one>());
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise
