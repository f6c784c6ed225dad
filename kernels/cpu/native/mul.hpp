#pragma once
/// Bound by bytes.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/op/mul.hpp>

namespace isotope::cpu {

template <NativeProgram P> struct kernel<op::mul, P, kernels::native> : native::each_of<op::mul, P, 2> {
  static ISOTOPE_INLINE native::vector of(native::vector a, native::vector b) { return a * b; }
};

}  // namespace isotope::cpu
