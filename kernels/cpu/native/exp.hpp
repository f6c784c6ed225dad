#pragma once
/// Bound by flops.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/kernels/cpu/native/math/exp.hpp>
#include <isotope/op/exp.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

struct exp : each_row<exp, 1> {
  static ISOTOPE_INLINE vector of(vector x) { return lanewise::exp(x); }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::exp, P, kernels::native> : native::exp {};
}  // namespace isotope::cpu
