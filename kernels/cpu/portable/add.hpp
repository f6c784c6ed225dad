#pragma once
/// Bound by bytes.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/op/add.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::add, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::each<2>(in, out, n, [](float a, float b) ISOTOPE_INLINE_LAMBDA { return a + b; });
  }
};

}  // namespace isotope::cpu
