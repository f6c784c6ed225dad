#pragma once
/// Bound by the square root and the division.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/sqrt.hpp>
#include <isotope/op/rsqrt.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::rsqrt, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    float* y = static_cast<float*>(out);
    math::sqrt(static_cast<const float*>(in[0]), y, n);
    math::map(n, y, [](float root) ISOTOPE_INLINE_LAMBDA { return 1.0f / root; }, y);
  }
};

}  // namespace isotope::cpu
