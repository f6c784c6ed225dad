#pragma once
/// Bound by flops: a polynomial of degree 9.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/kernels/cpu/native/math/log.hpp>
#include <isotope/op/log.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

struct log : each_row<log, 1> {
  static ISOTOPE_INLINE vector of(vector x) { return lanewise::log(x); }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::log, P, kernels::native> : native::log {};
}  // namespace isotope::cpu
