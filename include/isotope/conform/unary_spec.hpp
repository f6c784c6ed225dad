#pragma once
/// What specifications of element-wise ops of one operand share. `S` provides
///   f(x)      the formula in f64
///   slope(x)  its derivative, if the op has one: value, and what bounds its error
///   range     the range of random numbers
#include <array>

#include "spec.hpp"

namespace isotope::conform {

/// The derivative at x. A kernel's error is at most a few roundoffs of `magnitude` (the terms of the formula before they cancel) and, if the rule
/// reads the rounded y, y's roundoff times `through_y` = |y d slope / dy|.
struct derivative {
  double value = 0, magnitude = 0, through_y = 0;
  derivative(double v) : value(v), magnitude(std::fabs(v)) {}
  derivative(double v, double m, double t = 0) : value(v), magnitude(m), through_y(t) {}
};
struct interval {
  double low = -2, high = 2;
};

/// Shapes at which element-wise kernels change their code path: empty, one, primes, tiles of 4, 64 and 256 and one past them.
inline constexpr std::array<shape, 11> flat_shapes{shape{},     shape{1},   shape{0},   shape{3},          shape{64},    shape{65},
                                                   shape{5, 7}, shape{256}, shape{257}, shape{2, 3, 5, 7}, shape{33, 31}};

/// Returns how far a function may be off beyond the rounding to a narrower format: the units in the last place of the op's policy, on a gpu at least
/// 1e-7, on a processor 1/128 of that rounding.
inline double elementary_slack(const call& c, double y) {
  if (c.on.ulps() == 0) return 0;
  const double s = c.on.ulps() * ulp(c.on.accum(), y), least = c.on.gpu ? 1e-7 : c.on.short_of_rounding() * std::fabs(y);
  return s < least ? least : s;
}

template <class S> struct unary_spec : spec_basis {
  static constexpr std::array inputs{operand_role{"x"}};
  static constexpr std::array outputs{result_role{"y", holds::floating, comparison::scaled}};
  static constexpr interval range{-4, 4};
  static constexpr numeric_policy policy{.cpu_ulps = usual_cpu_ulps, .gpu_ulps = usual_gpu_ulps};
  static constexpr attributes usual{};  // of the cases

  static void reference(const call& c, std::span<answer> y) {
    const std::int64_t n = c.in[0].dims.count();
    const double *x = c.in[0].at.data(), ulps = c.on.ulps();
    y[0].resize(n);
    double *value = y[0].value.data(), *slack = y[0].slack.data();
    for (std::int64_t i = 0; i < n; ++i) value[i] = formula(c, x[i]);
    if (ulps > 0)
      for (std::int64_t i = 0; i < n; ++i) slack[i] = elementary_slack(c, value[i]);
    if (c.on.ulps() > 0 && c.on.stored() == 0) y[0].roundings = 0;  // its rounding is among the units
  }
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) requires requires(double x) { S::slope(x); } {
    const std::int64_t n = c.in[0].dims.count();
    const double *x = c.in[0].at.data(), *dy0 = dy[0].at.data();
    dx[0].resize(n);
    double *value = dx[0].value.data(), *slack = dx[0].slack.data();
    // the formula's functions are off by the device's units, each operation by a rounding
    const double relative = (2 * c.on.ulps() + 4) * c.on.u() + c.on.short_of_rounding(), stored = c.on.stored(),
                 least = c.on.gpu ? 1e-7 : 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const derivative d = S::slope(x[i]);
      value[i] = dy0[i] * d.value;
      slack[i] = std::fabs(dy0[i]) * (relative * d.magnitude + stored * d.through_y + least);
    }
  }
  static void cases(case_sink& s) {
    const attributes& a = S::usual;
    const auto x = [&](const shape& n) { return s.x(n, S::range.low, S::range.high); };
    s.add({s.x({65536}, 0, 0, &generator_of<generators::all_of_16_bits>)}, a);
    s.add({s.x({24}, 0, 0, &generator_of<generators::specials>)}, a);
    s.add({s.x({511}, -30, 30, &generator_of<generators::exponents>)}, a);
    if (s.how() != strength::fast) s.add({s.x({65536}, 0, 0, &generator_of<generators::all_halves>)}, a);
    for (const shape& n : flat_shapes) s.add({x(n)}, a, differentiable);
    // integers, with 0 among them if the op accepts it
    s.add({s.x({96}, std::ceil(S::range.low), std::floor(S::range.high) + 1, &generator_of<generators::whole>)}, a, differentiable);
    s.add({ordered(x({12, 17}), {1, 0})}, a, differentiable);
    s.add({ordered(x({3, 4, 5}), {1, 2, 0})}, a, differentiable);
    for (int k = 0; k < s.repeats(); ++k) s.add({x({s.size(k, 0, 1, 9), s.size(k, 1, 1, 300)})}, a, differentiable);
  }

  static double formula(const call& c, double x) {
    if constexpr (requires { S::f(c, x); }) return S::f(c, x);
    else return S::f(x);
  }
  static constexpr bool differentiable = requires(double x) { S::slope(x); };

 private:
  constexpr unary_spec() = default;
  friend S;
};

}  // namespace isotope::conform
