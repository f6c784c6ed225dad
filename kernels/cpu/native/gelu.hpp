#pragma once
/// Bound by flops: an exponential and a division, in f32. Where results are rounded to bf16, the tanh form uses a shorter exponential.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/kernels/cpu/native/math/gelu_erf.hpp>
#include <isotope/kernels/cpu/native/math/gelu_tanh.hpp>
#include <isotope/kernels/cpu/native/math/gelu_tanh_bf16.hpp>
#include <isotope/op/gelu.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

template <class P> struct gelu_tanh : each_row<gelu_tanh<P>, 1> {
  static ISOTOPE_INLINE vector of(vector x) {
    if constexpr (std::same_as<P, precision::bf16>) return lanewise::gelu_tanh_bf16(x);
    else return lanewise::gelu_tanh(x);
  }
};

template <class P> struct gelu_tanh_grad : each_row<gelu_tanh_grad<P>, 2> {
  static ISOTOPE_INLINE vector of(vector x, vector dy) {
    if constexpr (std::same_as<P, precision::bf16>) return dy * lanewise::gelu_tanh_derivative_bf16(x);
    else return dy * lanewise::gelu_tanh_derivative(x);
  }
};

struct gelu_erf : each_row<gelu_erf, 1> {
  static ISOTOPE_INLINE vector of(vector x) { return lanewise::gelu_erf(x); }
};

struct gelu_erf_grad : each_row<gelu_erf_grad, 2> {
  static ISOTOPE_INLINE vector of(vector x, vector dy) { return dy * lanewise::gelu_erf_derivative(x); }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::gelu_tanh, P, kernels::native> : native::gelu_tanh<P> {};
template <NativeProgram P> struct kernel<op::gelu_tanh_grad, P, kernels::native> : native::gelu_tanh_grad<P> {};
template <NativeProgram P> struct kernel<op::gelu_erf, P, kernels::native> : native::gelu_erf {};
template <NativeProgram P> struct kernel<op::gelu_erf_grad, P, kernels::native> : native::gelu_erf_grad {};
}  // namespace isotope::cpu
