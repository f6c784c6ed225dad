#pragma once
/// Bound by bytes.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/op/scale.hpp>

namespace isotope::cpu {

template <NativeProgram P> struct kernel<op::scale, P, kernels::native> : native::each_of<op::scale, P, 1> {
  static ISOTOPE_INLINE native::vector of(native::vector x, float k) { return k * x; }
};

template <NativeProgram P> struct kernel<op::shift, P, kernels::native> : native::each_of<op::shift, P, 1> {
  static ISOTOPE_INLINE native::vector of(native::vector x, float k) { return x + k; }
};

}  // namespace isotope::cpu
