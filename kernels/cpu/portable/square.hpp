#pragma once
/// Bound by bytes.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/op/square.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::square, P, kernels::portable> : portable::each_of<op::square, P, 1> {
  static ISOTOPE_INLINE float of(float x) { return x * x; }
};

}  // namespace isotope::cpu
