#pragma once
/// Bound by bytes in memory, by the division in cache.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/op/div.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

struct div : each_row<div, 2> {
  static ISOTOPE_INLINE vector of(vector a, vector b) { return a / b; }
};

struct div_grad : each_row<div_grad, 3> {
  static ISOTOPE_INLINE vector of(vector a, vector b, vector dy) { return -(dy / b) * (a / b); }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::div, P, kernels::native> : native::div {};
template <NativeProgram P> struct kernel<op::div_grad, P, kernels::native> : native::div_grad {};
}  // namespace isotope::cpu
