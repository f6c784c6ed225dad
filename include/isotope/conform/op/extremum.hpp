#pragma once
#include "../../op/extremum.hpp"
#include "sum.hpp"

namespace isotope::conform {

template <bool Largest> struct extremum_spec : reduction_spec {
  static constexpr track on = track::strict;
  static constexpr std::array outputs{result_role{"y", holds::floating, comparison::exact}};
  static constexpr numeric_policy policy{};
  static constexpr bool bends = true;
  /// IEEE 754-2019, 9.6: -0 is below 0.
  static bool better(double a, double b) {
    if (a == b) return Largest ? std::signbit(a) < std::signbit(b) : std::signbit(a) > std::signbit(b);
    return Largest ? a > b : a < b;
  }

  static void reference(const call& c, std::span<answer> y) {
    const reduced_shape r(c.in[0].dims, c.constants<op::reduction>().axes);
    y[0].resize(r.y.count());
    for (double& v : y[0].value) v = Largest ? -infinity : infinity;
    for_each_index(r.x, [&](std::int64_t i, const extents& at) {
      double& v = y[0].value[std::size_t(r.position(at))];
      if (std::isnan(c.in[0][i]) || better(c.in[0][i], v)) v = std::isnan(v) ? v : c.in[0][i];
    });
  }
  /// Ties share the gradient.
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    const reduced_shape r(c.in[0].dims, c.constants<op::reduction>().axes);
    std::array<answer, 1> y;
    reference(c, y);
    std::vector<double> ties(y[0].value.size());
    for_each_index(r.x, [&](std::int64_t i, const extents& at) {
      const auto p = std::size_t(r.position(at));
      ties[p] += c.in[0][i] == y[0].value[p] ? 1 : 0;
    });
    dx[0].resize(r.x.count());
    for_each_index(r.x, [&](std::int64_t i, const extents& at) {
      const auto p = std::size_t(r.position(at));
      if (c.in[0][i] != y[0].value[p]) return;
      const double g = dy[0].at[p] / ties[p];
      dx[0].set(i, g, 5 * c.on.u() * std::fabs(g));
    });
  }
  static void cases(case_sink& s) {
    const auto with = [](std::int64_t mask) { return op::extremum::constants{.axes = mask}; };
    for (const std::int64_t mask : {1, 2, 3}) s.add({s.x({7, 20}, 0, 181, &generator_of<generators::distinct>)}, with(mask), true);
    shapes(s, s.how() != strength::fast);  // the gradient is element-wise code for every shape, which drivers on the processor must compile
    s.add({s.x({24, 24}, 0, 0, &generator_of<generators::specials>)}, with(2));
    s.add({s.x({24, 24}, 0, 0, &generator_of<generators::specials>)}, with(1));
    s.add({s.x({9, 40}, -3, 3, &generator_of<generators::whole>)}, with(2), true);  // ties
    s.add({s.x({9, 40}, 1, 1, &generator_of<generators::constant>)}, with(2), true);
    s.put({.kind = case_kind::refusal, .attr = with(2), .in = {s.x({3, 0})}});
  }
};
template <> struct op_spec<op::max> : extremum_spec<true> {};
template <> struct op_spec<op::min> : extremum_spec<false> {};

template <> struct op_spec<op::argmax> : spec_basis {
  static constexpr track on = track::integer;
  static constexpr std::array inputs{operand_role{"x"}};
  static constexpr std::array outputs{result_role{"index", holds::integers, comparison::exact}};
  static constexpr std::array fields{attribute_field{"axis", attribute_kind::axis, 0, -1}};
  static constexpr numeric_policy policy{.nan = "the first is the largest"};
  /// The first of equals, the first NaN.
  static void reference(const call& c, std::span<answer> y) {
    const array& x = c.in[0];
    const int axis = int(c.constants<op::argmax>().axis);
    y[0].resize(x.dims.count() / std::max<std::int64_t>(1, x.dims[axis]));
    std::int64_t line = 0;
    for_each_line(x.dims, axis, [&](std::int64_t first, std::int64_t step, std::int64_t n) {
      std::int64_t best = 0;
      for (std::int64_t k = 1; k < n; ++k) {
        const double a = x[first + k * step], b = x[first + best * step];
        if (!std::isnan(b) && (std::isnan(a) || a > b)) best = k;
      }
      y[0].set(line++, double(best));
    });
  }
  static void cases(case_sink& s) {
    const auto with = [](std::int64_t axis) { return op::argmax::constants{.axis = axis}; };
    for (const shape& n : {shape{1}, shape{7}, shape{64}, shape{65}, shape{1025}}) s.add({s.x(n)}, with(0));
    for (std::int64_t axis = 0; axis < 3; ++axis) {
      s.add({s.x({5, 6, 7})}, with(axis));
      s.add({ordered(s.x({5, 6, 7}), {1, 2, 0})}, with(axis));
      s.add({s.x({4, 9, 5}, 0, 3, &generator_of<generators::whole>)}, with(axis));
    }
    s.add({s.x({24, 24}, 0, 0, &generator_of<generators::specials>)}, with(0));
    s.add({s.x({24, 24}, 0, 0, &generator_of<generators::specials>)}, with(1));
    for (int k = 0; k < s.repeats(); ++k) s.add({s.x({s.size(k, 0, 1, 20), s.size(k, 1, 1, 300)})}, with(s.size(k, 2, 0, 1)));
    s.put({.kind = case_kind::refusal, .attr = with(2), .in = {s.x({2, 3})}});
  }
};

}  // namespace isotope::conform
