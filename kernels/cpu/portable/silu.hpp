#pragma once
/// Bound by flops.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/silu.hpp>
#include <isotope/op/silu.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::silu, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::each<1>(in, out, n, [](float x) ISOTOPE_INLINE_LAMBDA { return math::silu(x); });
  }
};

template <VectorProgram P> struct kernel<op::silu_grad, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::each<2>(in, out, n, [](float x, float dy) ISOTOPE_INLINE_LAMBDA { return dy * math::silu_derivative(x); });
  }
};

}  // namespace isotope::cpu
