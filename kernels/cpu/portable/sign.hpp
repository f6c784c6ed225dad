#pragma once
/// Bound by bytes.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/arithmetic.hpp>
#include <isotope/op/sign.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::sign, P, kernels::portable> : portable::each_of<op::sign, P, 1> {
  static ISOTOPE_INLINE float of(float x) { return math::select(math::mask_zero(x) | math::mask_nan(x), x, math::with_sign(1.0f, x)); }
};

}  // namespace isotope::cpu
