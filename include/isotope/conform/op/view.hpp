#pragma once
/// Narrow, pad, permute, reshape, expand.
#include "../../op/view.hpp"
#include "../exact_spec.hpp"

namespace isotope::conform {

/// A range of an axis, and the inverse op.
struct range_spec : exact_spec {
  /// Calls f(element of the part, element of the whole) for the part [first, first + n) of an axis.
  template <class F> static void inside(const shape& whole, int axis, std::int64_t first, std::int64_t n, F&& f) {
    shape part = whole;
    part.set(axis, n);
    for_each_index(part, [&](std::int64_t i, const extents& at) {
      std::int64_t p = 0;
      for (int k = 0; k < whole.rank; ++k) p = p * whole[k] + at[std::size_t(k)] + (k == axis ? first : 0);
      f(i, p);
    });
  }
};
template <> struct op_spec<op::narrow> : range_spec {
  static constexpr std::array fields{attribute_field{"axis", attribute_kind::axis, 0, 0},
                                     attribute_field{.name = "first", .slot = 1, .required = true},
                                     attribute_field{.name = "length", .slot = 2, .required = true}};
  static void reference(const call& c, std::span<answer> y) {
    const shape& x = c.in[0].dims;
    const auto [axis, first, length] = c.constants<op::narrow>();
    y[0].resize(x.count() / std::max<std::int64_t>(1, x[int(axis)]) * length);
    inside(x, int(axis), first, length, [&](std::int64_t i, std::int64_t p) { y[0].set(i, c.in[0][p]); });
  }
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    const auto [axis, first, length] = c.constants<op::narrow>();
    dx[0].resize(c.in[0].dims.count());
    inside(c.in[0].dims, int(axis), first, length, [&](std::int64_t i, std::int64_t p) { dx[0].set(p, dy[0][i]); });
  }
  static void cases(case_sink& s) {
    const auto with = [](std::int64_t axis, std::int64_t first, std::int64_t n) {
      return op::narrow::constants{.axis = axis, .first = first, .length = n};
    };
    s.add({s.x({9})}, with(0, 2, 5), true);
    s.add({s.x({9})}, with(0, 0, 0));
    s.add({s.x({4, 65})}, with(1, 64, 1), true);
    s.add({s.x({5, 3, 4})}, with(1, 1, 2), true);
    s.add({ordered(s.x({6, 7}), {1, 0})}, with(0, 1, 4), true);
    for (int k = 0; k < s.repeats(); ++k) {
      const std::int64_t n = s.size(k, 0, 2, 90), first = s.size(k, 1, 0, n - 1);
      s.add({s.x({s.size(k, 2, 1, 9), n})}, with(1, first, n - first), true);
    }
    s.put({.kind = case_kind::refusal, .attr = with(0, 4, 6), .in = {s.x({9})}});
  }
};
template <> struct op_spec<op::pad> : range_spec {
  static constexpr std::array fields{attribute_field{"axis", attribute_kind::axis, 0, 0},
                                     attribute_field{.name = "first", .slot = 1, .required = true},
                                     attribute_field{.name = "size", .slot = 2, .required = true}};
  static shape whole(const call& c) {
    shape y = c.in[0].dims;
    y.set(int(c.constants<op::pad>().axis), c.constants<op::pad>().size);
    return y;
  }
  static void reference(const call& c, std::span<answer> y) {
    const auto axis = int(c.constants<op::pad>().axis);
    y[0].resize(whole(c).count());
    inside(whole(c), axis, c.constants<op::pad>().first, c.in[0].dims[axis],
           [&](std::int64_t i, std::int64_t p) { y[0].set(p, c.in[0][i]); });
  }
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    const auto axis = int(c.constants<op::pad>().axis);
    dx[0].resize(c.in[0].dims.count());
    inside(whole(c), axis, c.constants<op::pad>().first, c.in[0].dims[axis],
           [&](std::int64_t i, std::int64_t p) { dx[0].set(i, dy[0][p]); });
  }
  static void cases(case_sink& s) {
    const auto with = [](std::int64_t axis, std::int64_t first, std::int64_t n) {
      return op::pad::constants{.axis = axis, .first = first, .size = n};
    };
    s.add({s.x({5})}, with(0, 2, 9), true);
    s.add({s.x({5})}, with(0, 0, 5), true);
    s.add({s.x({4, 1})}, with(1, 64, 65), true);
    s.add({s.x({5, 3, 4})}, with(1, 1, 6), true);
    s.add({ordered(s.x({6, 7}), {1, 0})}, with(0, 1, 9), true);
    for (int k = 0; k < s.repeats(); ++k) {
      const std::int64_t n = s.size(k, 0, 2, 90), first = s.size(k, 1, 0, 20);
      s.add({s.x({s.size(k, 2, 1, 9), n})}, with(1, first, n + first + k % 3), true);
    }
    s.put({.kind = case_kind::refusal, .attr = with(0, 4, 6), .in = {s.x({9})}});
  }
};

template <> struct op_spec<op::permute> : exact_spec {
  static constexpr std::array fields{attribute_field{.name = "order", .kind = attribute_kind::order, .slot = 0, .required = true}};
  /// Calls f(element of y, element of x).
  template <class F> static void moves(const call& c, F&& f) {
    const shape& x = c.in[0].dims;
    const auto [order] = c.constants<op::permute>();
    shape y;
    for (int k = 0; k < x.rank; ++k) y.push(x.axis(int(order[std::size_t(k)])));
    for_each_index(y, [&](std::int64_t i, const extents& at) {
      extents from{};
      for (int k = 0; k < x.rank; ++k) from[std::size_t(order[std::size_t(k)])] = at[std::size_t(k)];
      std::int64_t p = 0;
      for (int k = 0; k < x.rank; ++k) p = p * x[k] + from[std::size_t(k)];
      f(i, p);
    });
  }
  static void reference(const call& c, std::span<answer> y) {
    y[0].resize(c.in[0].dims.count());
    moves(c, [&](std::int64_t i, std::int64_t p) { y[0].set(i, c.in[0][p]); });
  }
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    dx[0].resize(c.in[0].dims.count());
    moves(c, [&](std::int64_t i, std::int64_t p) { dx[0].set(p, dy[0][i]); });
  }
  static void cases(case_sink& s) {
    const auto with = [](std::initializer_list<std::int64_t> order) {
      op::permute::constants c;
      std::size_t k = 0;
      for (auto i : order) c.order[k++] = i;
      return c;
    };
    s.add({s.x({5, 7})}, with({1, 0}), true);
    s.add({s.x({64, 65})}, with({1, 0}), true);
    s.add({s.x({2, 3, 4})}, with({2, 0, 1}), true);
    s.add({s.x({2, 9, 3, 16})}, with({0, 2, 1, 3}), true);
    s.add({s.x({2, 3, 2, 5, 2, 3})}, with({5, 4, 3, 2, 1, 0}), true);
    for (int k = 0; k < s.repeats(); ++k)
      s.add({s.x({s.size(k, 0, 1, 9), s.size(k, 1, 1, 9), s.size(k, 2, 1, 33)})}, with({k % 3, (k + 1) % 3, (k + 2) % 3}), true);
    s.put({.kind = case_kind::refusal, .attr = with({0, 0}), .in = {s.x({5, 7})}});
  }
};

template <> struct op_spec<op::reshape> : exact_spec {
  static constexpr std::array fields{attribute_field{.name = "shape", .kind = attribute_kind::extents, .slot = 0, .required = true}};
  static void reference(const call& c, std::span<answer> y) { same(c.in[0], y[0]); }
  static void gradient(const call&, std::span<const array> dy, std::span<answer> dx) { same(dy[0], dx[0]); }
  static void cases(case_sink& s) {
    const auto to = [](const shape& dims) { return op::reshape::constants{.dims = dims}; };
    s.add({s.x({6, 4})}, to({24}), true);
    s.add({s.x({24})}, to({2, 3, 4}), true);
    s.add({s.x({1})}, to(shape{}), true);
    s.add({ordered(s.x({6, 4}), {1, 0})}, to({3, 8}), true);
    s.add({s.x({0, 3})}, to({3, 0}));
    for (int k = 0; k < s.repeats(); ++k) {
      const std::int64_t m = s.size(k, 0, 1, 9), n = s.size(k, 1, 1, 90);
      s.add({s.x({m, n})}, to({n, m}), true);
    }
    s.put({.kind = case_kind::refusal, .attr = to({5, 5}), .in = {s.x({6, 4})}});
  }
};

template <> struct op_spec<op::expand> : exact_spec {
  static constexpr std::array fields{attribute_field{.name = "shape", .kind = attribute_kind::extents, .slot = 0, .required = true}};
  static void reference(const call& c, std::span<answer> y) {
    const shape s = c.constants<op::expand>().dims;
    y[0].resize(s.count());
    for_each_index(s, [&](std::int64_t i, const extents& at) { y[0].set(i, c.in[0][repeated_position(c.in[0].dims, at, s.rank)]); });
  }
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    const shape s = c.constants<op::expand>().dims;
    dx[0].resize(c.in[0].dims.count());
    for_each_index(s, [&](std::int64_t i, const extents& at) {
      dx[0].add(repeated_position(c.in[0].dims, at, s.rank), dy[0][i], std::fabs(dy[0][i]));
    });
    dx[0].scale_slack(sum_roundings(double(s.count()) / std::max(1.0, double(c.in[0].dims.count()))) * c.on.u());
  }
  static void cases(case_sink& s) {
    const auto to = [](const shape& dims) { return op::expand::constants{.dims = dims}; };
    s.add({s.x({1})}, to({9}), true);
    s.add({s.x({5})}, to({3, 5}), true);
    s.add({s.x({5, 1})}, to({5, 65}), true);
    s.add({s.x({2, 1, 3, 1})}, to({2, 4, 3, 5}), true);
    s.add({s.x(shape{})}, to({4, 4}), true);
    for (int k = 0; k < s.repeats(); ++k)
      s.add({s.x({s.size(k, 0, 1, 9), 1})}, to({s.size(k, 1, 1, 9), s.size(k, 0, 1, 9), s.size(k, 2, 1, 70)}), true);
    s.put({.kind = case_kind::refusal, .attr = to({6, 4}), .in = {s.x({3, 4})}});
  }
};

}  // namespace isotope::conform
