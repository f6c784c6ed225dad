#pragma once
/// Bound by flops. The tanh form, GPT's, is calculated in f32 and takes a third of the time of math::gelu_tanh, which is within 1 ULP by way of f64.
#include <isotope/kernels/cpu/each.hpp>
#include <isotope/kernels/cpu/math/gelu_erf.hpp>
#include <isotope/kernels/cpu/weight.hpp>
#include <isotope/op/gelu.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace portable {

/// 2u = x (slope + cubic x^2) with u = sqrt(2/pi) (x + 0.044715 x^3).
inline constexpr double gelu_slope_exact = 1.5957691216057308, gelu_cubic_exact = 0.044715 * gelu_slope_exact;
inline constexpr float gelu_slope = float(gelu_slope_exact), gelu_slope_rest = float(gelu_slope_exact - double(gelu_slope)),
                       gelu_cubic = float(gelu_cubic_exact), gelu_cubic_rest = float(gelu_cubic_exact - double(gelu_cubic));

/// x / (1 + e^-2u), the rounding error of 2u carried into the exponential. Error: 2^-21 of the result above -9 (measured 37 ULP at -8.8, 2 above -1); -0 below -10.
ISOTOPE_INLINE float fast_gelu_tanh(float x) {
  const float w = math::bounded(x, 10.0f), w2 = w * w, p = math::madd(w2, gelu_cubic, gelu_slope), a = w * p;
  const float rest = math::madd(w2, gelu_cubic_rest, math::madd(math::madd(w, w, -w2), gelu_cubic, gelu_slope_rest));
  const float lost = math::madd(w, math::madd(w2, gelu_cubic, gelu_slope - p) + rest, math::madd(w, p, -a));
  const float e = exp_within_87(-a);
  const float y = x / (1.0f + math::madd(-lost, e, e));
  const std::uint32_t vanishes = math::mask_less(10.0f, math::magnitude(x)) & math::mask_sign(x) & ~math::mask_nan(x);
  return math::select(vanishes, -0.0f, y);
}
/// s (1 + x (1 - s) d2u/dx), s = 1 / (1 + e^-2u). Error: 2^-21.
ISOTOPE_INLINE float fast_gelu_tanh_derivative(float x) {
  const float w = math::bounded(x, 9.0f), w2 = w * w;
  const float e = exp_within_87(-w * math::madd(w2, gelu_cubic, gelu_slope)), s = 1.0f / (1.0f + e);
  return math::keep_nan(s * math::madd(w * math::madd(w2, 3.0f * gelu_cubic, gelu_slope) * e, s, 1.0f), x);
}

struct gelu_tanh {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    each<1>(in, out, n, [](float x) ISOTOPE_INLINE_LAMBDA { return fast_gelu_tanh(x); });
  }
};

struct gelu_tanh_grad {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    each<2>(in, out, n, [](float x, float dy) ISOTOPE_INLINE_LAMBDA { return dy * fast_gelu_tanh_derivative(x); });
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
