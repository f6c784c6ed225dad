#pragma once
/// Bound by flops: a polynomial of degree 6.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/exp.hpp>
#include <isotope/op/exp.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::exp, P, kernels::portable> : portable::each_of<op::exp, P, 1> {
  static ISOTOPE_INLINE float of(float x) { return math::exp(x); }
};

}  // namespace isotope::cpu
