#pragma once
/// Bound by bytes.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/op/square.hpp>

namespace isotope::cpu {

template <NativeProgram P> struct kernel<op::square, P, kernels::native> : native::each_of<op::square, P, 1> {
  static ISOTOPE_INLINE native::vector of(native::vector x) { return x * x; }
};

}  // namespace isotope::cpu
