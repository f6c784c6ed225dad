#pragma once
/// Bound by flops.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/kernels/cpu/native/math/exp.hpp>
#include <isotope/op/exp.hpp>

namespace isotope::cpu {

template <NativeProgram P> struct kernel<op::exp, P, kernels::native> : native::each_of<op::exp, P, 1> {
  static ISOTOPE_INLINE native::vector of(native::vector x) { return native::lanewise::exp(x); }
};

}  // namespace isotope::cpu
