#pragma once
/// Bound by flops: an exponential and a division.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/sigmoid.hpp>
#include <isotope/op/sigmoid.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::sigmoid, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::each<1>(in, out, n, [](float x) ISOTOPE_INLINE_LAMBDA { return math::sigmoid(x); });
  }
};

template <VectorProgram P> struct kernel<op::sigmoid_grad, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::each<2>(in, out, n, [](float y, float dy) ISOTOPE_INLINE_LAMBDA { return dy * y * (1.0f - y); });
  }
};

}  // namespace isotope::cpu
