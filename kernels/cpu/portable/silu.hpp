#pragma once
/// Bound by flops.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/silu.hpp>
#include <isotope/op/silu.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace portable {

struct silu {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    each<1>(in, out, n, [](float x) ISOTOPE_INLINE_LAMBDA { return math::silu(x); });
  }
};

struct silu_grad {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    each<2>(in, out, n, [](float x, float dy) ISOTOPE_INLINE_LAMBDA { return dy * math::silu_derivative(x); });
  }
};

}  // namespace portable
}  // namespace arch

template <VectorProgram P> struct kernel<op::silu, P, kernels::portable> : portable::silu {};
template <VectorProgram P> struct kernel<op::silu_grad, P, kernels::portable> : portable::silu_grad {};

}  // namespace isotope::cpu
