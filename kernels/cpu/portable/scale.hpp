#pragma once
/// Bound by bytes.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/op/scale.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::scale, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double scalar) {
    portable::each<1>(in, out, n, [k = float(scalar)](float x) ISOTOPE_INLINE_LAMBDA { return k * x; });
  }
};

template <VectorProgram P> struct kernel<op::shift, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double scalar) {
    portable::each<1>(in, out, n, [k = float(scalar)](float x) ISOTOPE_INLINE_LAMBDA { return x + k; });
  }
};

}  // namespace isotope::cpu
