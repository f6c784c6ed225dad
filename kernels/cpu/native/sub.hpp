#pragma once
/// Bound by bytes.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/op/sub.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace native {

struct sub : each_row<sub, 2> {
  static ISOTOPE_INLINE vector of(vector a, vector b) { return a - b; }
};

}  // namespace native
}  // namespace arch

template <NativeProgram P> struct kernel<op::sub, P, kernels::native> : native::sub {};

}  // namespace isotope::cpu
