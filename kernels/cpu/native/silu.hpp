#pragma once
/// Bound by flops: an exponential and a division.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/kernels/cpu/native/math/sigmoid.hpp>
#include <isotope/op/silu.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

struct silu : each_row<silu, 1> {
  static ISOTOPE_INLINE vector of(vector x) { return lanewise::silu(x); }
};

struct silu_grad : each_row<silu_grad, 2> {
  static ISOTOPE_INLINE vector of(vector x, vector dy) { return dy * lanewise::silu_derivative(x); }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::silu, P, kernels::native> : native::silu {};
template <NativeProgram P> struct kernel<op::silu_grad, P, kernels::native> : native::silu_grad {};
}  // namespace isotope::cpu
