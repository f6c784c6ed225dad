#pragma once
/// Bound by flops: a polynomial of degree 9.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/kernels/cpu/native/math/log.hpp>
#include <isotope/op/log.hpp>

namespace isotope::cpu {

template <NativeProgram P> struct kernel<op::log, P, kernels::native> : native::each_of<op::log, P, 1> {
  static ISOTOPE_INLINE native::vector of(native::vector x) { return native::lanewise::log(x); }
};

}  // namespace isotope::cpu
