#pragma once
/// Bound by the square root and the division.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/op/sqrt.hpp>

namespace isotope::cpu {

template <NativeProgram P> struct kernel<op::sqrt, P, kernels::native> : native::each_of<op::sqrt, P, 1> {
  static ISOTOPE_INLINE native::vector of(native::vector x) { return isa::sqrt_lanes(x); }
};

template <NativeProgram P> struct kernel<op::sqrt_grad, P, kernels::native> : native::each_of<op::sqrt_grad, P, 2> {
  static ISOTOPE_INLINE native::vector of(native::vector y, native::vector dy) { return dy / (2.0f * y); }
};

}  // namespace isotope::cpu
