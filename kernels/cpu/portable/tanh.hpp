#pragma once
/// Bound by flops: an exponential and a division.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/tanh.hpp>
#include <isotope/op/tanh.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::tanh, P, kernels::portable> : portable::each_of<op::tanh, P, 1> {
  static ISOTOPE_INLINE float of(float x) { return math::tanh(x); }
};

template <VectorProgram P> struct kernel<op::tanh_grad, P, kernels::portable> : portable::each_of<op::tanh_grad, P, 2> {
  static ISOTOPE_INLINE float of(float y, float dy) { return dy * ((1.0f - y) * (1.0f + y)); }
};

}  // namespace isotope::cpu
