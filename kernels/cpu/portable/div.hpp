#pragma once
/// Bound by bytes in memory, by the division in cache.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/op/div.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::div, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::each<2>(in, out, n, [](float a, float b) ISOTOPE_INLINE_LAMBDA { return a / b; });
  }
};

template <VectorProgram P> struct kernel<op::div_grad, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::each<3>(in, out, n, [](float a, float b, float dy) ISOTOPE_INLINE_LAMBDA { return -(dy / b) * (a / b); });
  }
};

}  // namespace isotope::cpu
