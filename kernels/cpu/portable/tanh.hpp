#pragma once
/// Bound by flops: an exponential and a division.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/tanh.hpp>
#include <isotope/op/tanh.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::tanh, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::each<1>(in, out, n, [](float x) ISOTOPE_INLINE_LAMBDA { return math::tanh(x); });
  }
};

template <VectorProgram P> struct kernel<op::tanh_grad, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::each<2>(in, out, n, [](float y, float dy) ISOTOPE_INLINE_LAMBDA { return dy * ((1.0f - y) * (1.0f + y)); });
  }
};

}  // namespace isotope::cpu
