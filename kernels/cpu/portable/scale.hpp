#pragma once
/// Bound by bytes.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/op/scale.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::scale, P, kernels::portable> : portable::each_of<op::scale, P, 1> {
  static ISOTOPE_INLINE float of(float x, float k) { return k * x; }
};

template <VectorProgram P> struct kernel<op::shift, P, kernels::portable> : portable::each_of<op::shift, P, 1> {
  static ISOTOPE_INLINE float of(float x, float k) { return x + k; }
};

}  // namespace isotope::cpu
