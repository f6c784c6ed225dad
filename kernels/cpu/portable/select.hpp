#pragma once
/// Bound by bytes. A boolean in a block is 0 or 1.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/op/select.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::less, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::each<2>(in, out, n, [](float a, float b) ISOTOPE_INLINE_LAMBDA { return a < b ? 1.0f : 0.0f; });
  }
};

template <VectorProgram P> struct kernel<op::equal, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::each<2>(in, out, n, [](float a, float b) ISOTOPE_INLINE_LAMBDA { return a == b ? 1.0f : 0.0f; });
  }
};

template <VectorProgram P> struct kernel<op::select, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::each<3>(in, out, n, [](float c, float a, float b) ISOTOPE_INLINE_LAMBDA { return c != 0.0f ? a : b; });
  }
};

}  // namespace isotope::cpu
