#pragma once
/// Bound by flops: an exponential and a division.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/kernels/cpu/native/math/sigmoid.hpp>
#include <isotope/op/silu.hpp>

namespace isotope::cpu {

template <NativeProgram P> struct kernel<op::silu, P, kernels::native> : native::each_of<op::silu, P, 1> {
  static ISOTOPE_INLINE native::vector of(native::vector x) { return native::lanewise::silu(x); }
};

template <NativeProgram P> struct kernel<op::silu_grad, P, kernels::native> : native::each_of<op::silu_grad, P, 2> {
  static ISOTOPE_INLINE native::vector of(native::vector x, native::vector dy) { return dy * native::lanewise::silu_derivative(x); }
};

}  // namespace isotope::cpu
