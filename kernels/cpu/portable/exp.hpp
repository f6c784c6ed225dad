#pragma once
/// Bound by flops: a polynomial of degree 6.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/exp.hpp>
#include <isotope/op/exp.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::exp, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::each<1>(in, out, n, [](float x) ISOTOPE_INLINE_LAMBDA { return math::exp(x); });
  }
};

}  // namespace isotope::cpu
