#pragma once
#include "../../op/select.hpp"
#include "../binary_spec.hpp"

namespace isotope::conform {

template <class S> struct comparison_spec : spec_basis {
  static constexpr track on = track::integer;
  static constexpr std::array inputs{operand_role{"a"}, operand_role{"b"}};
  static constexpr std::array outputs{result_role{"y", holds::truth, comparison::exact}};
  static constexpr numeric_policy policy{.nan = "in, then false"};
  static constexpr std::array boundary{0.0, -0.0, infinity, nan, 1.0};
  static void reference(const call& c, std::span<answer> y) {
    const shape s = broadcast(c.in[0].dims, c.in[1].dims).s;
    y[0].resize(s.count());
    for_each_index(s, [&](std::int64_t i, const extents& at) {
      y[0].set(i, S::f(c.in[0][repeated_position(c.in[0].dims, at, s.rank)], c.in[1][repeated_position(c.in[1].dims, at, s.rank)]) ? 1 : 0);
    });
  }
  static void cases(case_sink& s) {
    s.add({s.x({24, 24}, 0, 0, &generator_of<generators::specials>), s.x({24, 24}, 0, 0, &generator_of<generators::specials>)});
    for (const shape_pair& p : broadcasts)
      s.add({s.x(p.a, -3, 3, &generator_of<generators::whole>), s.x(p.b, -3, 3, &generator_of<generators::whole>)});
    for (const shape& n : flat_shapes)
      s.add({s.x(n, -3, 3, &generator_of<generators::whole>), s.x(n, -3, 3, &generator_of<generators::whole>)});
    s.add({ordered(s.x({12, 17}), {1, 0}), s.x({12, 17})});
    for (int k = 0; k < s.repeats(); ++k) s.add({s.x({s.size(k, 0, 1, 9), s.size(k, 1, 1, 200)}), s.x({s.size(k, 1, 1, 200)})});
    s.put({.kind = case_kind::refusal, .in = {s.x({2, 3}), s.x({2, 4})}});
  }

 private:
  constexpr comparison_spec() = default;
  friend S;
};
template <> struct op_spec<op::less> : comparison_spec<op_spec<op::less>> {
  static bool f(double a, double b) { return a < b; }
};
template <> struct op_spec<op::equal> : comparison_spec<op_spec<op::equal>> {
  static bool f(double a, double b) { return a == b; }
};

template <> struct op_spec<op::select> : spec_basis {
  static constexpr track on = track::strict;
  static constexpr std::array inputs{operand_role{"condition", holds::truth, false}, operand_role{"a"}, operand_role{"b"}};
  static constexpr std::array outputs{result_role{"y", holds::floating, comparison::exact}};
  static constexpr std::array boundary{0.0, -0.0, infinity, nan};

  static shape all(const call& c) { return broadcast(c.in[0].dims, broadcast(c.in[1].dims, c.in[2].dims).s).s; }
  static void reference(const call& c, std::span<answer> y) {
    const shape s = all(c);
    y[0].resize(s.count());
    for_each_index(s, [&](std::int64_t i, const extents& at) {
      const array& from = c.in[c.in[0][repeated_position(c.in[0].dims, at, s.rank)] != 0 ? 1 : 2];
      y[0].set(i, from[repeated_position(from.dims, at, s.rank)]);
    });
  }
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    const shape s = all(c);
    for (std::size_t k = 1; k < 3; ++k) dx[k].resize(c.in[k].dims.count());
    for_each_index(s, [&](std::int64_t i, const extents& at) {
      const std::size_t k = c.in[0][repeated_position(c.in[0].dims, at, s.rank)] != 0 ? 1 : 2;
      dx[k].add(repeated_position(c.in[k].dims, at, s.rank), dy[0][i], std::fabs(dy[0][i]));
    });
    for (std::size_t k = 1; k < 3; ++k)
      dx[k].scale_slack((std::log2(1 + double(s.count()) / std::max(1.0, double(c.in[k].dims.count()))) + 72) * c.on.u());
  }
  static void cases(case_sink& s) {
    const auto truth = [](const shape& n) { return operand_recipe{n, dtype::boolean, &generator_of<generators::truth>, 0, 1, row_major}; };
    for (const shape& n : flat_shapes) s.add({truth(n), s.x(n), s.x(n)}, {}, true);
    for (const shape_pair& p : broadcasts) {
      s.add({truth(p.a), s.x(p.b), s.x(p.a)}, {}, true);
      s.add({truth(broadcast(p.a, p.b).s), s.x(p.a), s.x(p.b)}, {}, true);
    }
    s.add({truth({24, 24}), s.x({24, 24}, 0, 0, &generator_of<generators::specials>),
           s.x({24, 24}, 0, 0, &generator_of<generators::specials>)});
    s.add({truth({12, 17}), ordered(s.x({12, 17}), {1, 0}), s.x({17})}, {}, true);
    for (int k = 0; k < s.repeats(); ++k) {
      const shape n{s.size(k, 0, 1, 9), s.size(k, 1, 1, 200)};
      s.add({truth(n), s.x(n), s.x(shape{n[1]})}, {}, true);
    }
    s.put({.kind = case_kind::refusal, .in = {s.x({2, 3}), s.x({2, 3}), s.x({2, 3})}});
    s.put({.kind = case_kind::refusal, .in = {truth({2, 3}), s.x({2, 3}), s.x({2, 4})}});
  }
};

}  // namespace isotope::conform
