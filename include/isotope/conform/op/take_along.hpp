#pragma once
#include "../../op/take_along.hpp"
#include "../spec.hpp"

namespace isotope::conform {

template <> struct op_spec<op::take_along> : spec_basis {
  static constexpr track on = track::strict;
  static constexpr std::array inputs{operand_role{"x"}, operand_role{"index", holds::integers, false}};
  static constexpr std::array outputs{result_role{"y", holds::floating, comparison::exact}};
  static constexpr numeric_policy policy{.flushes_on_gpu = false, .nan = "in, then out; for indices out of range unless they give zeros"};
  static constexpr std::array fields{attribute_field{"zeros", attribute_kind::flag, 0, 0}};
  static constexpr std::array boundary{-1.0, 0.0, 1.0, 50257.0};

  static void reference(const call& c, std::span<answer> y) {
    const std::int64_t N = c.in[0].dims[-1], K = c.in[1].dims[-1];
    const double outside = c.constants<op::take_along>().zeros ? 0.0 : nan;
    y[0].resize(c.in[1].dims.count());
    for (std::int64_t i = 0; i < c.in[1].dims.count(); ++i) {
      const double from = c.in[1][i];
      y[0].set(i, from >= 0 && from < double(N) ? c.in[0][i / K * N + std::int64_t(from)] : outside);
    }
  }
  /// The updates of one element are summed one after another.
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    const std::int64_t N = c.in[0].dims[-1], K = c.in[1].dims[-1];
    dx[0].resize(c.in[0].dims.count());
    std::vector<double> uses(std::size_t(c.in[0].dims.count()));
    for (std::int64_t i = 0; i < c.in[1].dims.count(); ++i) {
      const double from = c.in[1][i];
      if (!(from >= 0 && from < double(N))) continue;
      const std::int64_t to = i / K * N + std::int64_t(from);
      uses[std::size_t(to)] += 1;
      dx[0].add(to, dy[0][i], std::fabs(dy[0][i]));
    }
    for (std::size_t k = 0; k < uses.size(); ++k) dx[0].slack[k] *= (uses[k] + 1) * c.on.u();
  }
  static void cases(case_sink& s) {
    const auto add = [&](const shape& x, std::int64_t K, bool zeros = false) {
      shape at = x;
      at.set(x.rank - 1, K);
      s.add({s.x(x), s.integers(at, 0, double(x[-1]), &generator_of<generators::stray_ids>)}, op::take_along::constants{zeros}, true);
    };
    for (const std::int64_t N : {1, 5, 64, 257}) add({3, N}, 7, N == 64);
    add({7}, 9);
    add({2, 3, 11}, 4, true);
    add({4, 9}, 0);
    add({0, 9}, 2);
    for (int k = 0; k < s.repeats(); ++k) add({s.size(k, 0, 1, 30), s.size(k, 1, 1, 200)}, s.size(k, 2, 1, 60), k % 2 == 0);
    s.put({.kind = case_kind::refusal, .in = {s.x({5, 7}), s.integers({4, 2}, 0, 5, &generator_of<generators::whole>)}});
    s.put({.kind = case_kind::refusal, .in = {s.x({5, 7}), s.x({5, 2})}});
  }
};

template <> struct op_spec<op::scatter_add> : spec_basis {
  static constexpr track on = track::strict;
  static constexpr std::array inputs{operand_role{"x"}, operand_role{"updates"}, operand_role{"index", holds::integers, false}};
  static constexpr std::array outputs{result_role{"y"}};
  static constexpr numeric_policy policy{.sums = "updates in ascending order, in f32", .nan = "in, then out there"};
  static constexpr std::array boundary{-1.0, 0.0, 1.0, 50257.0};

  static void reference(const call& c, std::span<answer> y) {
    const std::int64_t N = c.in[0].dims[-1], K = c.in[2].dims[-1], n = c.in[0].dims.count();
    y[0].resize(n);
    std::vector<double> uses(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) y[0].add(i, c.in[0][i], std::fabs(c.in[0][i]));
    for (std::int64_t i = 0; i < c.in[2].dims.count(); ++i) {
      const double at = c.in[2][i];
      if (!(at >= 0 && at < double(N))) continue;
      const std::int64_t to = i / K * N + std::int64_t(at);
      uses[std::size_t(to)] += 1;
      y[0].add(to, c.in[1][i], std::fabs(c.in[1][i]));
    }
    for (std::size_t k = 0; k < uses.size(); ++k) y[0].slack[k] *= (uses[k] + 1) * c.on.u();
  }
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    const std::int64_t N = c.in[0].dims[-1], K = c.in[2].dims[-1];
    dx[0].resize(c.in[0].dims.count());
    dx[1].resize(c.in[2].dims.count());
    for (std::int64_t i = 0; i < c.in[0].dims.count(); ++i) dx[0].set(i, dy[0][i]);
    for (std::int64_t i = 0; i < c.in[2].dims.count(); ++i) {
      const double at = c.in[2][i];
      dx[1].set(i, at >= 0 && at < double(N) ? dy[0][i / K * N + std::int64_t(at)] : 0.0);
    }
  }
  static void cases(case_sink& s) {
    const auto add = [&](const shape& x, std::int64_t K) {
      shape at = x;
      at.set(x.rank - 1, K);
      s.add({s.x(x), s.x(at), s.integers(at, 0, double(x[-1]), &generator_of<generators::stray_ids>)}, {}, true);
    };
    for (const std::int64_t N : {1, 5, 64, 1025}) add({3, N}, 70);
    add({2, 1700}, 120);  // some in a second block of a row
    add({7}, 9);
    add({2, 3, 11}, 4);
    add({4, 9}, 0);
    add({0, 9}, 2);
    s.add({s.x({2, 40}), s.x({2, 300}), s.integers({2, 300}, 0, 40, &generator_of<generators::constant>)});  // one element takes all
    for (int k = 0; k < s.repeats(); ++k) add({s.size(k, 0, 1, 30), s.size(k, 1, 1, 200)}, s.size(k, 2, 1, 60));
    s.put({.kind = case_kind::refusal, .in = {s.x({5, 7}), s.x({5, 2}), s.integers({5, 3}, 0, 5, &generator_of<generators::whole>)}});
    s.put({.kind = case_kind::refusal, .in = {s.x({5, 7}), s.x({5, 2}), s.x({5, 2})}});
  }
};

}  // namespace isotope::conform
