#pragma once
/// gelu_tanh and its derivative for bf16 operands and results: within 2^-15, 1/128 of the rounding to bf16, with half of the instructions.
///
/// y = x / (1 + 2^-t), t = x (c0 + c1 x^2). Operands have 8 bits, so x^2 is exact and t is off by 4 roundings: 2^-15.3 of E = 2^-t where E matters.
/// 2^f = 1 + f P(f), |f| <= 1/2, with P by Chebyshev's criterion on the relative error, within 2^-18.4.
#include <isotope/kernels/cpu/native/math/lanes.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise {

/// 2^(Scale - t) for results between 2^-126 and 2^127; NaN may become any number.
template <int Scale> ISOTOPE_INLINE vector short_decay(vector t) {
  constexpr float c[] = {1.0f, 0.6931241750717163f, 0.24024099111557007f, 0.055906426161527634f, 0.009582852944731712f};
  constexpr float shift = power::shift + float(Scale);
  const vector shifted = shift - t, f = (shift - shifted) - t;
  return from_bits(bits(polynomial(f, c)) + (bits(shifted) << 23));
}

struct gelu_bf16 {
  static constexpr float c0 = 2.302208198144325f, c1 = 0.1029432395800235f;  // sqrt(8/pi) log2 e, and 0.044715 times it
  static constexpr float least = -10.67f;                                    // where y rounds to -0
  static constexpr float most = 8.0f;                                        // where E no longer matters
};

/// gelu(-inf) = -0 (the limit), gelu(inf) = inf; NaN is kept.
ISOTOPE_INLINE vector gelu_tanh_bf16(vector x) {
  using g = gelu_bf16;
  constexpr int scale = -24;  // E may reach 2^149.7 and 1 / (1 + E) its inverse, so both are scaled by 2^-24
  const vector v = at_least(x, g::least), w = at_most(v, g::most);
  const vector one = all(0x1p-24f);
  return v * (one / (one + short_decay<scale>(w * madd(w * w, all(g::c1), all(g::c0)))));
}

/// S + S (1 - S) w with S = 1 / (1 + E), w = x (a0 + a1 x^2), to 2^-15 of 1 + |w| E / (1 + E)^2. 1 at inf, less than 2^-60 at -inf; NaN is kept.
ISOTOPE_INLINE vector gelu_tanh_derivative_bf16(vector x) {
  using g = gelu_bf16;
  constexpr float a0 = 1.5957691216057308f, a1 = 0.21406444881780073f;  // sqrt(8/pi), and 3 0.044715 times it
  const vector v = at_most(at_least(x, -g::most), g::most), v2 = v * v;
  const vector s = 1.0f / (1.0f + short_decay<0>(v * madd(v2, all(g::c1), all(g::c0))));
  return s * madd(v * madd(v2, all(a1), all(a0)), 1.0f - s, all(1.0f));
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise
