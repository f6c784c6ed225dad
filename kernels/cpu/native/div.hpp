#pragma once
/// Bound by bytes in memory, by the division in cache.
#include <isotope/kernels/cpu/native/each_row.hpp>
#include <isotope/op/div.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace native {

struct div : each_row<div, 2> {
  static ISOTOPE_INLINE vector of(vector a, vector b) { return a / b; }
};

}  // namespace native
}  // namespace arch

template <NativeProgram P> struct kernel<op::div, P, kernels::native> : native::div {};

}  // namespace isotope::cpu
