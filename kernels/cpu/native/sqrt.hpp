#pragma once
/// Bound by the square root and the division.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/op/sqrt.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

struct sqrt : each_row<sqrt, 1> {
  static ISOTOPE_INLINE vector of(vector x) { return isa::sqrt_lanes(x); }
};

struct sqrt_grad : each_row<sqrt_grad, 2> {
  static ISOTOPE_INLINE vector of(vector y, vector dy) { return dy / (2.0f * y); }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::sqrt, P, kernels::native> : native::sqrt {};
template <NativeProgram P> struct kernel<op::sqrt_grad, P, kernels::native> : native::sqrt_grad {};
}  // namespace isotope::cpu
