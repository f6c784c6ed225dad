#pragma once
/// Bound by bytes. A boolean in a block is 0 or 1.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/op/select.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::less, P, kernels::portable> : portable::each_of<op::less, P, 2> {
  static ISOTOPE_INLINE float of(float a, float b) { return a < b ? 1.0f : 0.0f; }
};

template <VectorProgram P> struct kernel<op::equal, P, kernels::portable> : portable::each_of<op::equal, P, 2> {
  static ISOTOPE_INLINE float of(float a, float b) { return a == b ? 1.0f : 0.0f; }
};

template <VectorProgram P> struct kernel<op::select, P, kernels::portable> : portable::each_of<op::select, P, 3> {
  static ISOTOPE_INLINE float of(float c, float a, float b) { return c != 0.0f ? a : b; }
};

}  // namespace isotope::cpu
