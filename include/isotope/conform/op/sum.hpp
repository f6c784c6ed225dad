#pragma once
#include "../../op/sum.hpp"
#include "../reduction_axes.hpp"
#include "../spec.hpp"

namespace isotope::conform {

struct reduction_spec : spec_basis {
  static constexpr std::array inputs{operand_role{"x"}};
  static constexpr std::array fields{attribute_field{"axes", attribute_kind::axes, 0, 0},
                                     attribute_field{"keep", attribute_kind::flag, 1, 0},
                                     attribute_field{"format", attribute_kind::format_or_none, 2, 0}};
  static constexpr numeric_policy policy{.sums = "fixed blocks and a tree, in f32"};
  static constexpr std::array boundary{0.0, -0.0, infinity, nan, 0x1p100};

  /// Masks of axes, keeping or not, in any memory order, at lengths around the blocks.
  static void shapes(case_sink& s, bool gradient) {
    const auto with = [](std::int64_t mask, bool keep) { return op::reduction::constants{.axes = mask, .keep = keep}; };
    const auto add = [&](const operand_recipe& x, const attributes& a) { s.add({x}, a, gradient); };
    for (const shape& n : {shape{1}, shape{7}, shape{64}, shape{65}, shape{1023}, shape{4097}}) add(s.x(n), with(1, false));
    for (std::int64_t mask = 0; mask < 8; ++mask) {
      add(s.x({5, 6, 7}), with(mask, (mask & 1) != 0));
      add(ordered(s.x({5, 6, 7}), {2, 0, 1}), with(mask, (mask & 2) != 0));
    }
    add(s.x({2, 3, 4, 5, 2, 3}), with(0b101010, false));
    add(s.x({3, 257}), with(2, false));
    add(s.x({257, 3}), with(1, false));
    add(s.x({1000, 33}), with(1, true));
    add(s.x({40, 90}), with(2, false));
    add(ordered(s.x({40, 90}), {1, 0}), with(2, false));
    add(s.x({40, 700}), with(1, false));
    add(s.x({4, 2048}), with(2, true));
    for (int k = 0; k < s.repeats(); ++k) add(s.x({s.size(k, 0, 1, 40), s.size(k, 1, 1, 90)}), with(s.size(k, 2, 1, 3), k % 2 == 0));
    s.put({.kind = case_kind::refusal, .attr = with(8, false), .in = {s.x({2, 3})}});
  }
};

template <> struct op_spec<op::sum> : reduction_spec {
  static constexpr std::array outputs{result_role{"y"}};
  /// |e| <= (log2 n + 72) u sum |x|
  static void reference(const call& c, std::span<answer> y) {
    const reduced_shape r(c.in[0].dims, c.constants<op::reduction>().axes);
    y[0].resize(r.y.count());
    for_each_index(r.x, [&](std::int64_t i, const extents& at) { y[0].add(r.position(at), c.in[0][i], std::fabs(c.in[0][i])); });
    y[0].scale_slack(sum_roundings(double(r.length())) * c.on.u());
  }
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    const reduced_shape r(c.in[0].dims, c.constants<op::reduction>().axes);
    dx[0].resize(r.x.count());
    for_each_index(r.x, [&](std::int64_t i, const extents& at) { dx[0].set(i, dy[0][r.position(at)]); });
  }
  static void cases(case_sink& s) {
    shapes(s, true);
    op::sum::constants all{.axes = 1};
    test_case hard{.attr = all, .in = {s.x({3000}, 0, 0, &generator_of<generators::cancelling>)}};
    hard.ill_conditioned = true;
    s.put(hard);
    s.add({s.x({0})}, all);
    s.add({s.x({100000}, 0.1, 0.1, &generator_of<generators::constant>)}, all);
    s.add(
        {
            s.x({3, 0}),
        },
        all);
    all.axes = 2;
    s.add({s.x({24, 24}, 0, 0, &generator_of<generators::specials>)}, all);
    s.add({s.x({3, 2000, 5})}, all, true);  // columns of several batches, in chunks of rows
    all.format = s.accum();
    s.add({s.x({6, 300})}, all);
  }
};
template <> struct op_spec<op::mean> : reduction_spec {
  static constexpr std::array outputs{result_role{"y"}};
  static void reference(const call& c, std::span<answer> y) {
    op_spec<op::sum>::reference(c, y);
    const double n = double(reduced_shape(c.in[0].dims, c.constants<op::reduction>().axes).length());
    for (std::size_t i = 0; i < y[0].value.size(); ++i)
      y[0].set(std::int64_t(i), y[0].value[i] / n, y[0].slack[i] / n + 2 * c.on.u() * std::fabs(y[0].value[i] / n));
  }
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    op_spec<op::sum>::gradient(c, dy, dx);
    const double n = double(reduced_shape(c.in[0].dims, c.constants<op::reduction>().axes).length());
    for (std::size_t i = 0; i < dx[0].value.size(); ++i)
      dx[0].set(std::int64_t(i), dx[0].value[i] / n, 3 * c.on.u() * std::fabs(dx[0].value[i] / n));
    dx[0].nmse = -1;  // one rounding, broadcast: a mean over it is meaningless
  }
  static void cases(case_sink& s) { shapes(s, true); }
};

}  // namespace isotope::conform
