#pragma once
/// Bound by flops: an exponential and a division, in f32. The erf form has none: the portable one, in f64, runs.
#include <isotope/kernels/cpu/native/each_row.hpp>
#include <isotope/kernels/cpu/native/math/gelu_tanh.hpp>
#include <isotope/op/gelu.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace native {

struct gelu_tanh : each_row<gelu_tanh, 1> {
  static ISOTOPE_INLINE vector of(vector x) { return lanewise::gelu_tanh(x); }
};

struct gelu_tanh_grad : each_row<gelu_tanh_grad, 2> {
  static ISOTOPE_INLINE vector of(vector x, vector dy) { return dy * lanewise::gelu_tanh_derivative(x); }
};

}  // namespace native
}  // namespace arch

template <NativeProgram P> struct kernel<op::gelu_tanh, P, kernels::native> : native::gelu_tanh {};
template <NativeProgram P> struct kernel<op::gelu_tanh_grad, P, kernels::native> : native::gelu_tanh_grad {};

}  // namespace isotope::cpu
