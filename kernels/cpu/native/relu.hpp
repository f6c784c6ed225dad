#pragma once
/// Bound by bytes.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/op/relu.hpp>

namespace isotope::cpu {

template <NativeProgram P> struct kernel<op::relu, P, kernels::native> : native::each_of<op::relu, P, 1> {
  static ISOTOPE_INLINE native::vector of(native::vector x) { return x < 0.0f ? native::vector{} : x; }
};

template <NativeProgram P> struct kernel<op::relu_grad, P, kernels::native> : native::each_of<op::relu_grad, P, 2> {
  static ISOTOPE_INLINE native::vector of(native::vector x, native::vector dy) { return x > 0.0f ? dy : native::vector{}; }
};

}  // namespace isotope::cpu
