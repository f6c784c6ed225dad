#pragma once
/// Bound by bytes.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/op/add.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

struct add : each_row<add, 2> {
  static ISOTOPE_INLINE vector of(vector a, vector b) { return a + b; }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::add, P, kernels::native> : native::add {};
}  // namespace isotope::cpu
