#pragma once
/// Bound by flops: an exponential and a division.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/kernels/cpu/native/math/tanh.hpp>
#include <isotope/op/tanh.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

struct tanh : each_row<tanh, 1> {
  static ISOTOPE_INLINE vector of(vector x) { return lanewise::tanh(x); }
};

struct tanh_grad : each_row<tanh_grad, 2> {
  static ISOTOPE_INLINE vector of(vector y, vector dy) { return dy * ((1.0f - y) * (1.0f + y)); }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::tanh, P, kernels::native> : native::tanh {};
template <NativeProgram P> struct kernel<op::tanh_grad, P, kernels::native> : native::tanh_grad {};
}  // namespace isotope::cpu
