#pragma once
/// Bound by flops.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/silu.hpp>
#include <isotope/op/silu.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::silu, P, kernels::portable> : portable::each_of<op::silu, P, 1> {
  static ISOTOPE_INLINE float of(float x) { return math::silu(x); }
};

template <VectorProgram P> struct kernel<op::silu_grad, P, kernels::portable> : portable::each_of<op::silu_grad, P, 2> {
  static ISOTOPE_INLINE float of(float x, float dy) { return dy * math::silu_derivative(x); }
};

}  // namespace isotope::cpu
