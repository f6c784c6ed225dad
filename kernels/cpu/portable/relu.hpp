#pragma once
/// Bound by bytes. NaN is kept: it is not below zero.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/op/relu.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::relu, P, kernels::portable> : portable::each_of<op::relu, P, 1> {
  static ISOTOPE_INLINE float of(float x) { return x < 0.0f ? 0.0f : x; }
};

template <VectorProgram P> struct kernel<op::relu_grad, P, kernels::portable> : portable::each_of<op::relu_grad, P, 2> {
  static ISOTOPE_INLINE float of(float x, float dy) { return x > 0.0f ? dy : 0.0f; }
};

}  // namespace isotope::cpu
