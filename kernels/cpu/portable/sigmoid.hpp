#pragma once
/// Bound by flops: an exponential and a division.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/sigmoid.hpp>
#include <isotope/op/sigmoid.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace portable {

struct sigmoid {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    each<1>(in, out, n, [](float x) ISOTOPE_INLINE_LAMBDA { return math::sigmoid(x); });
  }
};

struct sigmoid_grad {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    each<2>(in, out, n, [](float y, float dy) ISOTOPE_INLINE_LAMBDA { return dy * y * (1.0f - y); });
  }
};

}  // namespace portable
}  // namespace arch

template <VectorProgram P> struct kernel<op::sigmoid, P, kernels::portable> : portable::sigmoid {};
template <VectorProgram P> struct kernel<op::sigmoid_grad, P, kernels::portable> : portable::sigmoid_grad {};

}  // namespace isotope::cpu
