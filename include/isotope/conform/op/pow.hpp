#pragma once
#include "../../op/pow.hpp"
#include "../binary_spec.hpp"

namespace isotope::conform {
template <> struct op_spec<op::pow> : binary_spec<op_spec<op::pow>> {
  static constexpr std::array boundary{0.0, -0.0, 1.0, -1.0, -3.0, 0.5, 8388609.0, -infinity, nan};
  static constexpr numeric_policy policy{
      .nan = "in, then out, but 1 for a = 1 or b = 0", .cpu_ulps = usual_cpu_ulps, .gpu_ulps = usual_gpu_ulps};
  static constexpr interval range{0.25, 3}, range_b{-3, 3};
  static double f(double a, double b) { return std::pow(a, b); }
  static double slack(const call& c, double y) { return elementary_slack(c, y); }
  static double da(double a, double b) { return b == 0 ? 0 : b * std::pow(a, b - 1); }
  static double db(double a, double b) { return a == 0 && b >= 0 ? 0 : std::pow(a, b) * std::log(a); }
  /// Each of the functions and products rounds, and a rounding of b - 1 changes da by (b - 1) ln a of it.
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    const array &a = c.in[0], &b = c.in[1];
    const shape s = broadcast(a.dims, b.dims).s;
    for (std::size_t k = 0; k < 2; ++k) dx[k].resize(c.in[k].dims.count());
    for_each_index(s, [&](std::int64_t i, const extents& at) {
      const auto pa = repeated_position(a.dims, at, s.rank), pb = repeated_position(b.dims, at, s.rank);
      const double ga = dy[0][i] * da(a[pa], b[pb]), gb = dy[0][i] * db(a[pa], b[pb]);
      dx[0].add(pa, ga, std::fabs(ga) * (3 + std::fabs((b[pb] - 1) * std::log(a[pa]))));
      dx[1].add(pb, gb, std::fabs(gb) * 4);
    });
    for (std::size_t k = 0; k < 2; ++k) {
      const double n = double(s.count()) / double(std::max<std::int64_t>(1, c.in[k].dims.count()));
      dx[k].scale_slack((sum_roundings(n) + 2 * c.on.ulps() + 4) * c.on.u() + c.on.stored());
    }
  }
  /// A fast run has few shapes: each is code of its own, long in the gradient, which drivers on the processor must compile.
  static void cases(case_sink& s) {
    if (s.how() != strength::fast) return binary_spec<op_spec<op::pow>>::cases(s);
    const auto any = [&](const shape& n) { return s.x(n, 0, 0, &generator_of<generators::specials>); };
    const auto a = [&](const shape& n) { return s.x(n, range.low, range.high); };
    const auto b = [&](const shape& n) { return s.x(n, range_b.low, range_b.high); };
    s.add({any({24, 24}), any({24, 24})});
    s.add({s.x({511}, -20, 20, &generator_of<generators::exponents>), s.x({511}, -20, 20, &generator_of<generators::exponents>)});
    s.add({s.x({65536}, 0, 0, &generator_of<generators::all_of_16_bits>), s.x({1}, 3, 3, &generator_of<generators::constant>)});
    for (const shape& n : {shape{0}, shape{1}, shape{257}}) s.add({a(n), b(n)}, {}, true);
    s.add({a({7, 5}), b({5})}, {}, true);
    s.put({.kind = case_kind::refusal, .in = {a({2, 3}), b({2, 4})}});
  }
};
}  // namespace isotope::conform
