#pragma once
/// Bound by bytes in memory, by the division in cache.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/op/div.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace portable {

struct div {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    each<2>(in, out, n, [](float a, float b) ISOTOPE_INLINE_LAMBDA { return a / b; });
  }
};

struct div_grad {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    each<3>(in, out, n, [](float a, float b, float dy) ISOTOPE_INLINE_LAMBDA { return -(dy / b) * (a / b); });
  }
};

}  // namespace portable
}  // namespace arch

template <VectorProgram P> struct kernel<op::div, P, kernels::portable> : portable::div {};
template <VectorProgram P> struct kernel<op::div_grad, P, kernels::portable> : portable::div_grad {};

}  // namespace isotope::cpu
