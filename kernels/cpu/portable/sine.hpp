#pragma once
/// Bound by flops: a reduction in f64 and two polynomials.
#include <cmath>

#include <isotope/kernels/cpu/body/each.hpp>
#include <isotope/kernels/cpu/math/sine.hpp>
#include <isotope/op/sine.hpp>

namespace isotope::cpu {
namespace portable {
/// y[i] = f(x[i]) if that takes every number, else the same element by element, with `any` for those that it does not take.
template <class F, class Any> void sines(const void* in, void* out, std::int64_t n, const F& f, const Any& any) {
  const float* x = static_cast<const float*>(in);
  float* y = static_cast<float*>(out);
  bool all = true;
  for (std::int64_t i = 0; i < n; ++i) all &= math::sine_takes(x[i]);
  if (all) return math::map(n, y, f, x);
  for (std::int64_t i = 0; i < n; ++i) y[i] = math::sine_takes(x[i]) ? f(x[i]) : float(any(double(x[i])));
}
}  // namespace portable

template <VectorProgram P> struct kernel<op::sin, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::sines(
        in[0], out, n, [](float x) ISOTOPE_INLINE_LAMBDA { return math::sine_shifted<0>(x); }, [](double x) { return std::sin(x); });
  }
};
template <VectorProgram P> struct kernel<op::cos, P, kernels::portable> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    portable::sines(
        in[0], out, n, [](float x) ISOTOPE_INLINE_LAMBDA { return math::sine_shifted<1>(x); }, [](double x) { return std::cos(x); });
  }
};

}  // namespace isotope::cpu
