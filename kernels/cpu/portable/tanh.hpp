#pragma once
/// Bound by flops: an exponential and a division.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/tanh.hpp>
#include <isotope/op/tanh.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace portable {

struct tanh {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    each<1>(in, out, n, [](float x) ISOTOPE_INLINE_LAMBDA { return math::tanh(x); });
  }
};

struct tanh_grad {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    each<2>(in, out, n, [](float y, float dy) ISOTOPE_INLINE_LAMBDA { return dy * ((1.0f - y) * (1.0f + y)); });
  }
};

}  // namespace portable
}  // namespace arch

template <VectorProgram P> struct kernel<op::tanh, P, kernels::portable> : portable::tanh {};
template <VectorProgram P> struct kernel<op::tanh_grad, P, kernels::portable> : portable::tanh_grad {};

}  // namespace isotope::cpu
