#pragma once
/// Bound by bytes. NaN is kept: it is not below zero.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/op/relu.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::relu, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::each<1>(in, out, n, [](float x) ISOTOPE_INLINE_LAMBDA { return x < 0.0f ? 0.0f : x; });
  }
};

template <VectorProgram P> struct kernel<op::relu_grad, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::each<2>(in, out, n, [](float x, float dy) ISOTOPE_INLINE_LAMBDA { return x > 0.0f ? dy : 0.0f; });
  }
};

}  // namespace isotope::cpu
