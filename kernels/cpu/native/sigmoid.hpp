#pragma once
/// Bound by flops: an exponential and a division.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/kernels/cpu/native/math/sigmoid.hpp>
#include <isotope/op/sigmoid.hpp>

namespace isotope::cpu {

template <NativeProgram P> struct kernel<op::sigmoid, P, kernels::native> : native::each_of<op::sigmoid, P, 1> {
  static ISOTOPE_INLINE native::vector of(native::vector x) { return native::lanewise::sigmoid(x); }
};

template <NativeProgram P> struct kernel<op::sigmoid_grad, P, kernels::native> : native::each_of<op::sigmoid_grad, P, 2> {
  static ISOTOPE_INLINE native::vector of(native::vector y, native::vector dy) { return dy * y * (1.0f - y); }
};

}  // namespace isotope::cpu
