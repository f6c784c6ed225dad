#pragma once
/// Bound by flops; within 1 ULP through f64. Computing the tanh form in f32 took a third of the time, but was off by up to 37 ULP below -8.
#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/gelu_erf.hpp>
#include <isotope/kernels/cpu/math/gelu_tanh.hpp>
#include <isotope/op/gelu.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace portable {

struct gelu_tanh {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    each<1>(in, out, n, [](float x) ISOTOPE_INLINE_LAMBDA { return math::gelu_tanh(x); });
  }
};

struct gelu_tanh_grad {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    each<2>(in, out, n, [](float x, float dy) ISOTOPE_INLINE_LAMBDA { return dy * math::gelu_tanh_derivative(x); });
  }
};

struct gelu_erf {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    each<1>(in, out, n, [](float x) ISOTOPE_INLINE_LAMBDA { return math::gelu_erf(x); });
  }
};

struct gelu_erf_grad {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    each<2>(in, out, n, [](float x, float dy) ISOTOPE_INLINE_LAMBDA { return dy * math::gelu_erf_derivative(x); });
  }
};

}  // namespace portable
}  // namespace arch

template <VectorProgram P> struct kernel<op::gelu_tanh, P, kernels::portable> : portable::gelu_tanh {};
template <VectorProgram P> struct kernel<op::gelu_tanh_grad, P, kernels::portable> : portable::gelu_tanh_grad {};
template <VectorProgram P> struct kernel<op::gelu_erf, P, kernels::portable> : portable::gelu_erf {};
template <VectorProgram P> struct kernel<op::gelu_erf_grad, P, kernels::portable> : portable::gelu_erf_grad {};

}  // namespace isotope::cpu
