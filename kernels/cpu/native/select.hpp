#pragma once
/// Bound by bytes. A boolean in a block is 0 or 1.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/op/select.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

struct less : each_row<less, 2> {
  static ISOTOPE_INLINE vector of(vector a, vector b) { return a < b ? lanewise::all(1.0f) : vector{}; }
};

struct equal : each_row<equal, 2> {
  static ISOTOPE_INLINE vector of(vector a, vector b) { return a == b ? lanewise::all(1.0f) : vector{}; }
};

struct select : each_row<select, 3> {
  static ISOTOPE_INLINE vector of(vector c, vector a, vector b) { return c != 0.0f ? a : b; }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::less, P, kernels::native> : native::less {};
template <NativeProgram P> struct kernel<op::equal, P, kernels::native> : native::equal {};
template <NativeProgram P> struct kernel<op::select, P, kernels::native> : native::select {};
}  // namespace isotope::cpu
