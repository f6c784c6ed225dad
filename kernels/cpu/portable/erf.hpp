#pragma once
/// Bound by flops: two polynomials and an exponential.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/erf.hpp>
#include <isotope/op/erf.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::erf, P, kernels::portable> : portable::each_of<op::erf, P, 1> {
  static ISOTOPE_INLINE float of(float x) { return math::erf(x); }
};

}  // namespace isotope::cpu
