#pragma once
/// Bound by bytes.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/op/relu.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

struct relu : each_row<relu, 1> {
  static ISOTOPE_INLINE vector of(vector x) { return x < 0.0f ? vector{} : x; }
};

struct relu_grad : each_row<relu_grad, 2> {
  static ISOTOPE_INLINE vector of(vector x, vector dy) { return x > 0.0f ? dy : vector{}; }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::relu, P, kernels::native> : native::relu {};
template <NativeProgram P> struct kernel<op::relu_grad, P, kernels::native> : native::relu_grad {};
}  // namespace isotope::cpu
