#pragma once
/// Bound by bytes.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/op/sub.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::sub, P, kernels::portable> : portable::each_of<op::sub, P, 2> {
  static ISOTOPE_INLINE float of(float a, float b) { return a - b; }
};

}  // namespace isotope::cpu
