#pragma once
/// y = 0.5 x (1 + tanh u) = x / (1 + e^-2u) with u = sqrt(2/pi) (x + 0.044715 x^3), and its derivative, all in f32.
///
/// e^-2u needs 2u to 2^-25 absolute, where 2u in f32 is off by up to 2^-18. With a = |x|, 2u log2 e = C a (a^2 + K) with K = 1 / 0.044715 is held in
/// two numbers: K = high + low, `high` a multiple of 2^-16, so that (a^2 + high) - high is exact for a <= 12 (up to 2^8 in steps of 2^-16 at most).
/// 2^f is a polynomial by Chebyshev interpolation, within 2^-26.7.
/// Source: Hendrycks & Gimpel 2016, arXiv:1606.08415, the tanh form used by GPT-2.
#include <isotope/kernels/cpu/native/math/gate.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace native::lanewise {

struct gelu_terms {
  static constexpr float most = 12.0f;  // gelu -12 rounds to -0
  vector a;                             // |x|
  power e;                              // e^-2u(a)
  explicit ISOTOPE_INLINE gelu_terms(vector x) : a(at_most(magnitude(x), most)) {
    constexpr float high = 0x1.65d26p4f, low = -1.081747996067861e-06f;  // K
    constexpr float c = 0x1.a5a7dp-4f, c_low = -2.016198436410503e-09f;  // C = 0.044715 sqrt(8/pi) log2 e
    constexpr float two_to_f[] = {0.6931471824645996f,   0.24022650718688965f,   0.055503569543361664f,
                                  0.009618082083761692f, 0.0013390978565439582f, 0.00015453262312803417f};
    const vector sum = madd(a, a, all(high));
    const vector sum_low = madd(a, a, high - sum) + low;
    const vector v = sum * a, v_low = madd(sum_low, a, madd(sum, a, -v));
    const vector shifted = madd(v, all(-c), all(power::shift));
    const vector f = madd(v, all(-c), power::shift - shifted) - madd(v, all(c_low), v_low * c);
    e = {shifted, f * polynomial(f, two_to_f)};
  }
};

/// Error: 3.5 ULP. gelu -inf = -0 (the limit), gelu inf = inf, NaN stays NaN.
ISOTOPE_INLINE vector gelu_tanh(vector x) { return gate(at_least(x, -gelu_terms::most), x, gelu_terms(x).e); }

/// Error: 4 ULP or 2^-23, whichever is more: terms cancel beside its root at -0.7525. -0 at -inf, 1 at inf, NaN stays NaN.
ISOTOPE_INLINE vector gelu_tanh_derivative(vector x) {
  constexpr float slope = 0.21406444881780075f, third_of_k = 7.454620000745462f;  // 2u' = slope (a^2 + K/3)
  const gelu_terms t(x);
  return gate_derivative(slope * t.a * madd(t.a, t.a, all(third_of_k)), x, t.e);
}

}  // namespace native::lanewise
}  // namespace arch
}  // namespace isotope::cpu
