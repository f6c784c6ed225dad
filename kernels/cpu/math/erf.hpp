#pragma once
/// y = erf x = 2/sqrt(pi) times the integral of e^(-t^2) from 0 to x.
///
/// For |x| < 1 it is x P(x^2), beyond 1 - e^-Q(|x|) with Q = -ln erfc; both use Chebyshev interpolation. Both are computed and one is selected.
#include <isotope/kernels/cpu/math/exp.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math {

/// Error: 3 ULP. erf +-0 = +-0, erf +-inf = +-1, NaN stays NaN.
ISOTOPE_INLINE float erf(float x) {
  constexpr float near[] = {1.1283791658483509f,    -0.37612626666720331f,    0.11283594715160218f,    -0.026854212010626412f,
                            0.0051890874234339740f, -0.00080168642871658695f, 0.000078758750626854883f};
  constexpr float far[] = {-0.00032013804967769884f, 1.1302334348419940f,      0.63182605155916301f,
                           0.11008008294882025f,     -0.026421136005663897f,   0.0047595962932662646f,
                           -0.00059680562566077970f, 0.000046058042689189779f, -1.6371514145936436e-6f};
  const float a = bounded(magnitude(x), 4.0f);  // erf 4 rounds to 1
  const float inner = a * polynomial(a * a, near);
  const split_exp e = split(-polynomial(a, far));
  const float outer = 1.0f - madd(power_of_two(e.k), e.expm1_r, power_of_two(e.k));
  return keep_nan(with_sign(select(mask_less(a, 1.0f), inner, outer), x), x);
}
inline double erf(double x) { return std::erf(x); }

/// y[i] = erf x[i]; y may be x.
template <class T> void erf(const T* x, T* y, std::int64_t n) {
  map(n, y, [](auto v) ISOTOPE_INLINE_LAMBDA { return erf(v); }, x);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math
