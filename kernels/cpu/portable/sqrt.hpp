#pragma once
/// Bound by the square root and the division.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/sqrt.hpp>
#include <isotope/op/sqrt.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::sqrt, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    math::sqrt(static_cast<const float*>(in[0]), static_cast<float*>(out), n);
  }
};

template <VectorProgram P> struct kernel<op::sqrt_grad, P, kernels::portable> : portable::each_of<op::sqrt_grad, P, 2> {
  static ISOTOPE_INLINE float of(float y, float dy) { return dy / (2.0f * y); }
};

}  // namespace isotope::cpu
