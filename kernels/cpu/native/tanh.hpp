#pragma once
/// Bound by flops: an exponential and a division.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/kernels/cpu/native/math/tanh.hpp>
#include <isotope/op/tanh.hpp>

namespace isotope::cpu {

template <NativeProgram P> struct kernel<op::tanh, P, kernels::native> : native::each_of<op::tanh, P, 1> {
  static ISOTOPE_INLINE native::vector of(native::vector x) { return native::lanewise::tanh(x); }
};

template <NativeProgram P> struct kernel<op::tanh_grad, P, kernels::native> : native::each_of<op::tanh_grad, P, 2> {
  static ISOTOPE_INLINE native::vector of(native::vector y, native::vector dy) { return dy * ((1.0f - y) * (1.0f + y)); }
};

}  // namespace isotope::cpu
