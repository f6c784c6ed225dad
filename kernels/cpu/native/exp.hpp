#pragma once
/// Bound by flops.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/kernels/cpu/native/math/exp.hpp>
#include <isotope/op/exp.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace native {

struct exp : each_row<exp, 1> {
  static ISOTOPE_INLINE vector of(vector x) { return lanewise::exp(x); }
};

}  // namespace native
}  // namespace arch

template <NativeProgram P> struct kernel<op::exp, P, kernels::native> : native::exp {};

}  // namespace isotope::cpu
