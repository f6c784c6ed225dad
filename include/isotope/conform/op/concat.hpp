#pragma once
#include "../../op/concat.hpp"
#include "../exact_spec.hpp"

namespace isotope::conform {

template <> struct op_spec<op::concat> : exact_spec {
  static constexpr std::array inputs{operand_role{"x", holds::any}, operand_role{.name = "more", .what = holds::any, .optional = true}};
  static constexpr std::array fields{attribute_field{"axis", attribute_kind::axis, 0, 0}};
  /// Calls f(operand, element of it, element of the whole).
  template <class F> static void pieces(const call& c, F&& f) {
    const int axis = int(c.constants<op::concat>().axis);
    std::int64_t inner = 1, all = 0, first = 0;
    for (int k = axis + 1; k < c.in[0].dims.rank; ++k) inner *= c.in[0].dims[k];
    for (const array& x : c.in) all += x.dims[axis];
    for (std::size_t k = 0; k < c.in.size(); ++k) {
      const std::int64_t n = c.in[k].dims[axis] * inner;
      for (std::int64_t i = 0; i < c.in[k].dims.count(); ++i) f(k, i, i / n * all * inner + first * inner + i % n);
      first += c.in[k].dims[axis];
    }
  }
  static void reference(const call& c, std::span<answer> y) {
    std::int64_t n = 0;
    for (const array& x : c.in) n += x.dims.count();
    y[0].resize(n);
    pieces(c, [&](std::size_t k, std::int64_t i, std::int64_t to) { y[0].set(to, c.in[k][i]); });
  }
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    for (std::size_t k = 0; k < c.in.size(); ++k) dx[k].resize(c.in[k].dims.count());
    pieces(c, [&](std::size_t k, std::int64_t i, std::int64_t to) { dx[k].set(i, dy[0][to]); });
  }
  static void cases(case_sink& s) {
    const auto with = [](std::int64_t axis) { return op::concat::constants{.axis = axis}; };
    s.add({s.x({4}), s.x({7})}, with(0), true);
    s.add({s.x({3, 5}), s.x({3, 1}), s.x({3, 64})}, with(1), true);
    s.add({s.x({3, 5}), s.x({2, 5})}, with(0), true);
    s.add({s.x({2, 3, 4}), s.x({2, 5, 4})}, with(1), true);
    s.add({s.x({9})}, with(0), true);
    s.add({s.x({1000, 20}), s.x({1000, 21})}, with(1), true);
    s.add({s.x({2, 0}), s.x({2, 3})}, with(1));
    s.add({s.x({5}), s.x({5}), s.x({5}), s.x({5}), s.x({5}), s.x({5}), s.x({5}), s.x({5})}, with(0), true);
    s.add({ordered(s.x({6, 7}), {1, 0}), s.x({6, 3})}, with(1), true);
    s.add({s.x({24}, 0, 0, &generator_of<generators::specials>), s.x({24}, 0, 0, &generator_of<generators::specials>)}, with(0));
    for (int k = 0; k < s.repeats(); ++k) {
      const std::int64_t m = s.size(k, 0, 1, 9), n = s.size(k, 1, 1, 70);
      s.add({s.x({m, n}), s.x(k % 2 == 0 ? shape{s.size(k, 2, 1, 9), n} : shape{m, s.size(k, 2, 1, 9)})}, with(k % 2), true);
    }
    s.put({.kind = case_kind::refusal, .attr = with(0), .in = {s.x({3, 5}), s.x({3, 4})}});
    s.put({.kind = case_kind::refusal, .attr = with(2), .in = {s.x({3, 5}), s.x({3, 5})}});
  }
};

template <> struct op_spec<op::split> : exact_spec {
  static constexpr std::array outputs{result_role{"parts", holds::any, comparison::exact}};
  static constexpr std::array fields{attribute_field{"axis", attribute_kind::axis, 0, -1},
                                     attribute_field{.name = "parts", .slot = 1, .required = true}};
  /// Calls f(part, element of it, element of x).
  template <class F> static void pieces(const call& c, F&& f) {
    const shape& x = c.in[0].dims;
    const auto [axis, parts] = c.constants<op::split>();
    std::int64_t inner = 1;
    for (int k = int(axis) + 1; k < x.rank; ++k) inner *= x[k];
    const std::int64_t n = x[int(axis)] / parts * inner;
    for (std::int64_t i = 0; i < x.count(); ++i) {
      const std::int64_t block = i / n, part = block % parts;
      f(std::size_t(part), block / parts * n + i % n, i);
    }
  }
  static void reference(const call& c, std::span<answer> y) {
    const std::int64_t parts = c.constants<op::split>().parts;
    for (std::size_t k = 0; k < std::size_t(parts); ++k) y[k].resize(c.in[0].dims.count() / parts);
    pieces(c, [&](std::size_t k, std::int64_t i, std::int64_t from) { y[k].set(i, c.in[0][from]); });
  }
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    dx[0].resize(c.in[0].dims.count());
    pieces(c, [&](std::size_t k, std::int64_t i, std::int64_t from) { dx[0].set(from, k < dy.size() ? dy[k][i] : 0); });
  }
  static void cases(case_sink& s) {
    const auto with = [](std::int64_t axis, std::int64_t parts) { return op::split::constants{.axis = axis, .parts = parts}; };
    for (std::int64_t parts = 1; parts <= 6; ++parts) s.add({s.x({3, 60})}, with(1, parts), true);
    s.add({s.x({6, 7})}, with(0, 3), true);
    s.add({s.x({2, 4, 5})}, with(1, 2), true);
    for (int k = 0; k < s.repeats(); ++k) s.add({s.x({s.size(k, 0, 1, 9), 4 * s.size(k, 1, 1, 20)})}, with(1, k % 2 == 0 ? 2 : 4), true);
    s.put({.kind = case_kind::refusal, .attr = with(1, 4), .in = {s.x({3, 6})}});
  }
};

}  // namespace isotope::conform
