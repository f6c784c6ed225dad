#pragma once
/// Bound by bytes.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/op/square.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::square, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::each<1>(in, out, n, [](float x) ISOTOPE_INLINE_LAMBDA { return x * x; });
  }
};

}  // namespace isotope::cpu
