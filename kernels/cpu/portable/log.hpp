#pragma once
/// Bound by flops: a polynomial of degree 9.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/log.hpp>
#include <isotope/op/log.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::log, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::each<1>(in, out, n, [](float x) ISOTOPE_INLINE_LAMBDA { return math::log(x); });
  }
};

}  // namespace isotope::cpu
