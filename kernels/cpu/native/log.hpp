#pragma once
/// Bound by flops: a polynomial of degree 9.
#include <isotope/kernels/cpu/native/body/each_row.hpp>
#include <isotope/kernels/cpu/native/math/log.hpp>
#include <isotope/op/log.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace native {

struct log : each_row<log, 1> {
  static ISOTOPE_INLINE vector of(vector x) { return lanewise::log(x); }
};

}  // namespace native
}  // namespace arch

template <NativeProgram P> struct kernel<op::log, P, kernels::native> : native::log {};

}  // namespace isotope::cpu
