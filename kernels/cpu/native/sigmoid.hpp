#pragma once
/// Bound by flops: an exponential and a division.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/kernels/cpu/native/math/sigmoid.hpp>
#include <isotope/op/sigmoid.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

struct sigmoid : each_row<sigmoid, 1> {
  static ISOTOPE_INLINE vector of(vector x) { return lanewise::sigmoid(x); }
};

struct sigmoid_grad : each_row<sigmoid_grad, 2> {
  static ISOTOPE_INLINE vector of(vector y, vector dy) { return dy * y * (1.0f - y); }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::sigmoid, P, kernels::native> : native::sigmoid {};
template <NativeProgram P> struct kernel<op::sigmoid_grad, P, kernels::native> : native::sigmoid_grad {};
}  // namespace isotope::cpu
