#pragma once
/// Bound by bytes in memory, by the division in cache.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/op/div.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::div, P, kernels::portable> : portable::each_of<op::div, P, 2> {
  static ISOTOPE_INLINE float of(float a, float b) { return a / b; }
};

template <VectorProgram P> struct kernel<op::div_grad, P, kernels::portable> : portable::each_of<op::div_grad, P, 3> {
  static ISOTOPE_INLINE float of(float a, float b, float dy) { return -(dy / b) * (a / b); }
};

}  // namespace isotope::cpu
