#pragma once
/// Bound by flops: a polynomial of degree 9.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/log.hpp>
#include <isotope/op/log.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::log, P, kernels::portable> : portable::each_of<op::log, P, 1> {
  static ISOTOPE_INLINE float of(float x) { return math::log(x); }
};

}  // namespace isotope::cpu
