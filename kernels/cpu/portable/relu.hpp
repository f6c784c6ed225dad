#pragma once
/// Bound by bytes. NaN is kept: it is not below zero.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/op/relu.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace portable {

struct relu {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    each<1>(in, out, n, [](float x) ISOTOPE_INLINE_LAMBDA { return x < 0.0f ? 0.0f : x; });
  }
};

struct relu_grad {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    each<2>(in, out, n, [](float x, float dy) ISOTOPE_INLINE_LAMBDA { return x > 0.0f ? dy : 0.0f; });
  }
};

}  // namespace portable
}  // namespace arch

template <VectorProgram P> struct kernel<op::relu, P, kernels::portable> : portable::relu {};
template <VectorProgram P> struct kernel<op::relu_grad, P, kernels::portable> : portable::relu_grad {};

}  // namespace isotope::cpu
