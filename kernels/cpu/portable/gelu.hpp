#pragma once
/// Bound by flops; within 1 ULP through f64. Computing the tanh form in f32 took a third of the time, but was off by up to 37 ULP below -8.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/gelu_erf.hpp>
#include <isotope/kernels/cpu/math/gelu_tanh.hpp>
#include <isotope/op/gelu.hpp>

namespace isotope::cpu {

template <VectorProgram P> struct kernel<op::gelu_tanh, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::each<1>(in, out, n, [](float x) ISOTOPE_INLINE_LAMBDA { return math::gelu_tanh(x); });
  }
};

template <VectorProgram P> struct kernel<op::gelu_tanh_grad, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::each<2>(in, out, n, [](float x, float dy) ISOTOPE_INLINE_LAMBDA { return dy * math::gelu_tanh_derivative(x); });
  }
};

template <VectorProgram P> struct kernel<op::gelu_erf, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::each<1>(in, out, n, [](float x) ISOTOPE_INLINE_LAMBDA { return math::gelu_erf(x); });
  }
};

template <VectorProgram P> struct kernel<op::gelu_erf_grad, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::each<2>(in, out, n, [](float x, float dy) ISOTOPE_INLINE_LAMBDA { return dy * math::gelu_erf_derivative(x); });
  }
};

}  // namespace isotope::cpu
