#pragma once
/// Bound by flops: an exponential and a division, in f32. Where results are rounded to bf16, both forms use a shorter exponential.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/kernels/cpu/native/math/gelu_erf.hpp>
#include <isotope/kernels/cpu/native/math/gelu_erf_bf16.hpp>
#include <isotope/kernels/cpu/native/math/gelu_tanh.hpp>
#include <isotope/kernels/cpu/native/math/gelu_tanh_bf16.hpp>
#include <isotope/op/gelu.hpp>

namespace isotope::cpu {

template <NativeProgram P> struct kernel<op::gelu_tanh, P, kernels::native> : native::each_of<op::gelu_tanh, P, 1> {
  static ISOTOPE_INLINE native::vector of(native::vector x) {
    if constexpr (std::same_as<P, precision::bf16>) return native::lanewise::gelu_tanh_bf16(x);
    else return native::lanewise::gelu_tanh(x);
  }
};

template <NativeProgram P> struct kernel<op::gelu_tanh_grad, P, kernels::native> : native::each_of<op::gelu_tanh_grad, P, 2> {
  static ISOTOPE_INLINE native::vector of(native::vector x, native::vector dy) {
    if constexpr (std::same_as<P, precision::bf16>) return dy * native::lanewise::gelu_tanh_derivative_bf16(x);
    else return dy * native::lanewise::gelu_tanh_derivative(x);
  }
};

template <NativeProgram P> struct kernel<op::gelu_erf, P, kernels::native> : native::each_of<op::gelu_erf, P, 1> {
  static ISOTOPE_INLINE native::vector of(native::vector x) {
    if constexpr (std::same_as<P, precision::bf16>) return native::lanewise::gelu_erf_bf16(x);
    else return native::lanewise::gelu_erf(x);
  }
};

template <NativeProgram P> struct kernel<op::gelu_erf_grad, P, kernels::native> : native::each_of<op::gelu_erf_grad, P, 2> {
  static ISOTOPE_INLINE native::vector of(native::vector x, native::vector dy) { return dy * native::lanewise::gelu_erf_derivative(x); }
};

}  // namespace isotope::cpu
