#pragma once
/// y = ln x.
///
/// x = 2^e m with sqrt(1/2) <= m < sqrt(2), f = m - 1: ln x = e ln 2 + f - f^2/2 + f^3 Q(f), Q by Chebyshev interpolation to 2^-25.
#include <isotope/kernels/cpu/math/arithmetic.hpp>
#include <isotope/kernels/cpu/math/map.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace math {

/// Error: 1 ULP. ln +-0 = -inf, ln inf = inf, NaN below zero, subnormals are right.
ISOTOPE_INLINE float log(float x) {
  constexpr float c[] = {0.33333331180030048f,  -0.24999996957950882f, 0.20000715748892102f,  -0.16667802319501255f, 0.14249057645697480f,
                         -0.12425687331451106f, 0.11685419923486739f,  -0.11479733846637636f, 0.069716114714511778f};
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  constexpr std::uint32_t sqrt_half = 0x3f35'04f3u;
  const bool subnormal = x < 0x1p-126f;
  const float normal = subnormal ? x * 0x1p23f : x;
  const std::uint32_t t = std::bit_cast<std::uint32_t>(normal) - sqrt_half;
  const float e = float(std::int32_t(t) >> 23) - (subnormal ? 23.0f : 0.0f);
  const float f = std::bit_cast<float>((t & 0x7f'ffffu) + sqrt_half) - 1.0f;
  const float f2 = f * f;
  const float tail = madd(-0.5f, f2, madd(e, -2.12194440e-4f, f * f2 * polynomial(f, c)));
  const float finite = madd(e, 0.693359375f, f + tail);  // e 0.693359375 is exact
  const float special = x == 0.0f ? -infinity : x < 0.0f ? nan : x;
  return ((x > 0.0f) & (x < infinity)) ? finite : special;
}
inline double log(double x) { return std::log(x); }

/// y[i] = ln x[i]; y may be x.
template <class T> void log(const T* x, T* y, std::int64_t n) {
  map(n, y, [](auto v) { return log(v); }, x);
}

}  // namespace math
}  // namespace arch
}  // namespace isotope::cpu
