#pragma once
/// Bound by bytes.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/op/scale.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

struct scale : each_row<scale, 1> {
  static ISOTOPE_INLINE vector of(vector x, float k) { return k * x; }
};

struct shift : each_row<shift, 1> {
  static ISOTOPE_INLINE vector of(vector x, float k) { return x + k; }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native

namespace isotope::cpu {
template <NativeProgram P> struct kernel<op::scale, P, kernels::native> : native::scale {};
template <NativeProgram P> struct kernel<op::shift, P, kernels::native> : native::shift {};
}  // namespace isotope::cpu
