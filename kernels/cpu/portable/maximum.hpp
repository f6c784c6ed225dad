#pragma once
/// Bound by bytes. -0 is below 0, and NaN goes through.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/arithmetic.hpp>
#include <isotope/op/maximum.hpp>

namespace isotope::cpu {
namespace portable {
/// All ones if a is below b, or a = -0 and b = 0; neither may be NaN.
ISOTOPE_INLINE std::uint32_t mask_below(float a, float b) {
  const auto order = [](float x) ISOTOPE_INLINE_LAMBDA {
    const auto i = std::int32_t(math::bits(x));
    return i ^ std::int32_t(std::uint32_t(i >> 31) & 0x7fff'ffffu);
  };
  return 0u - std::uint32_t(order(a) < order(b));
}
ISOTOPE_INLINE float keep_nan(float y, float a, float b) {
  return math::select(math::mask_nan(a), a, math::select(math::mask_nan(b), b, y));
}
}  // namespace portable

template <VectorProgram P> struct kernel<op::maximum, P, kernels::portable> : portable::each_of<op::maximum, P, 2> {
  static ISOTOPE_INLINE float of(float a, float b) { return portable::keep_nan(math::select(portable::mask_below(a, b), b, a), a, b); }
};
template <VectorProgram P> struct kernel<op::minimum, P, kernels::portable> : portable::each_of<op::minimum, P, 2> {
  static ISOTOPE_INLINE float of(float a, float b) { return portable::keep_nan(math::select(portable::mask_below(a, b), a, b), a, b); }
};

}  // namespace isotope::cpu
