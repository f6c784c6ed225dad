#pragma once
/// Bound by flops; within 1 ULP through f64. Computing the tanh form in f32 took a third of the time, but was off by up to 37 ULP below -8.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/gelu_erf.hpp>
#include <isotope/kernels/cpu/math/gelu_tanh.hpp>
#include <isotope/op/gelu.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::gelu_tanh, P, kernels::portable> : portable::each_of<op::gelu_tanh, P, 1> {
  static ISOTOPE_INLINE float of(float x) { return math::gelu_tanh(x); }
};

template <VectorProgram P> struct kernel<op::gelu_tanh_grad, P, kernels::portable> : portable::each_of<op::gelu_tanh_grad, P, 2> {
  static ISOTOPE_INLINE float of(float x, float dy) { return dy * math::gelu_tanh_derivative(x); }
};

template <VectorProgram P> struct kernel<op::gelu_erf, P, kernels::portable> : portable::each_of<op::gelu_erf, P, 1> {
  static ISOTOPE_INLINE float of(float x) { return math::gelu_erf(x); }
};

template <VectorProgram P> struct kernel<op::gelu_erf_grad, P, kernels::portable> : portable::each_of<op::gelu_erf_grad, P, 2> {
  static ISOTOPE_INLINE float of(float x, float dy) { return dy * math::gelu_erf_derivative(x); }
};

}  // namespace isotope::cpu
