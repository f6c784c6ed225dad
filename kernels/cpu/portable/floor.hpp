#pragma once
/// Bound by bytes.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/arithmetic.hpp>
#include <isotope/op/floor.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::floor, P, kernels::portable> : portable::each_of<op::floor, P, 1> {
  /// Adding 2^23 rounds |x| to a whole number.
  static ISOTOPE_INLINE float of(float x) {
    const float a = math::magnitude(x), nearest = (a + 0x1p23f) - 0x1p23f;
    const float down = nearest - math::from_bits(math::mask_less(a, nearest) & math::bits(1.0f));
    const float up = nearest + math::from_bits(math::mask_less(nearest, a) & math::bits(1.0f));
    const float whole = math::with_sign(math::select(math::mask_sign(x), up, down), x);
    return math::select(math::mask_less(a, 0x1p23f), whole, x);
  }
};

}  // namespace isotope::cpu
