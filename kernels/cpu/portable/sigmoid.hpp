#pragma once
/// Bound by flops: an exponential and a division.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/sigmoid.hpp>
#include <isotope/op/sigmoid.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::sigmoid, P, kernels::portable> : portable::each_of<op::sigmoid, P, 1> {
  static ISOTOPE_INLINE float of(float x) { return math::sigmoid(x); }
};

template <VectorProgram P> struct kernel<op::sigmoid_grad, P, kernels::portable> : portable::each_of<op::sigmoid_grad, P, 2> {
  static ISOTOPE_INLINE float of(float y, float dy) { return dy * y * (1.0f - y); }
};

}  // namespace isotope::cpu
