#pragma once
/// Bound by bytes.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/op/add.hpp>

namespace isotope::cpu {

template <NativeProgram P> struct kernel<op::add, P, kernels::native> : native::each_of<op::add, P, 2> {
  static ISOTOPE_INLINE native::vector of(native::vector a, native::vector b) { return a + b; }
};

}  // namespace isotope::cpu
