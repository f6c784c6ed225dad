#pragma once
/// Bound by bytes in memory, by the division in cache.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/op/div.hpp>

namespace isotope::cpu {

template <NativeProgram P> struct kernel<op::div, P, kernels::native> : native::each_of<op::div, P, 2> {
  static ISOTOPE_INLINE native::vector of(native::vector a, native::vector b) { return a / b; }
};

template <NativeProgram P> struct kernel<op::div_grad, P, kernels::native> : native::each_of<op::div_grad, P, 3> {
  static ISOTOPE_INLINE native::vector of(native::vector a, native::vector b, native::vector dy) { return -(dy / b) * (a / b); }
};

}  // namespace isotope::cpu
