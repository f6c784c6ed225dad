#pragma once
/// Bound by bytes.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/op/square.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

struct square : each_row<square, 1> {
  static ISOTOPE_INLINE vector of(vector x) { return x * x; }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::square, P, kernels::native> : native::square {};
}  // namespace isotope::cpu
