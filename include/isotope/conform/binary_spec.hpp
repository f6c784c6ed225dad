#pragma once
/// What specifications of element-wise ops of two operands share. `S` provides
///   f(a, b)     the formula in f64
///   da, db      the partial derivatives at (a, b), and `roundings` of da and db to the storage format on the way
#include "reduction_axes.hpp"
#include "unary_spec.hpp"

namespace isotope::conform {

/// Pairs of shapes that broadcast in every way.
struct shape_pair {
  shape a, b;
};
inline constexpr std::array<shape_pair, 10> broadcasts{{{{7, 5}, {7, 5}},
                                                        {{7, 5}, {5}},
                                                        {{7, 5}, {7, 1}},
                                                        {{7, 1}, {1, 5}},
                                                        {{}, {3, 4}},
                                                        {{2, 1, 3, 1}, {1, 5, 1, 64}},
                                                        {{4, 1, 9}, {4, 6, 9}},
                                                        {{0, 3}, {3}},
                                                        {{64, 64}, {64}},
                                                        {{257}, {1}}}};

template <class S> struct binary_spec : spec_basis {
  static constexpr std::array inputs{operand_role{"a"}, operand_role{"b"}};
  static constexpr std::array outputs{result_role{"y", holds::floating, comparison::scaled}};
  static constexpr interval range{-4, 4}, range_b{-4, 4};
  static constexpr double roundings_a = 1, roundings_b = 1;  // intermediate roundings of da and db to the storage format
  static double slack(const call&, double) { return 0; }

  static void reference(const call& c, std::span<answer> y) {
    const shape s = broadcast(c.in[0].dims, c.in[1].dims).s;
    y[0].resize(s.count());
    for_each_index(s, [&](std::int64_t i, const extents& at) {
      const double a = c.in[0][repeated_position(c.in[0].dims, at, s.rank)], b = c.in[1][repeated_position(c.in[1].dims, at, s.rank)];
      const double v = S::f(a, b);
      y[0].set(i, v, S::slack(c, v));
    });
  }
  /// da sums over the axes along which a was broadcast: the error is that of the terms and of the sum.
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) requires requires(double x) { S::da(x, x); } {
    const array &a = c.in[0], &b = c.in[1];
    const shape s = broadcast(a.dims, b.dims).s;
    dx[0].resize(a.dims.count());
    dx[1].resize(b.dims.count());
    for_each_index(s, [&](std::int64_t i, const extents& at) {
      const auto pa = repeated_position(a.dims, at, s.rank), pb = repeated_position(b.dims, at, s.rank);
      const double ga = dy[0][i] * S::da(a[pa], b[pb]), gb = dy[0][i] * S::db(a[pa], b[pb]);
      dx[0].add(pa, ga, std::fabs(ga));
      dx[1].add(pb, gb, std::fabs(gb));
    });
    for (int k = 0; k < 2; ++k) {
      const double n = double(s.count()) / double(std::max<std::int64_t>(1, c.in[std::size_t(k)].dims.count()));
      const double r = k == 0 ? S::roundings_a : S::roundings_b;
      dx[std::size_t(k)].scale_slack((sum_roundings(n) + 8) * c.on.u() + (n > 1 ? r : r - 1) * c.on.stored());
    }
  }
  static void cases(case_sink& s) {
    s.add({s.x({24, 24}, 0, 0, &generator_of<generators::specials>), s.x({24, 24}, 0, 0, &generator_of<generators::specials>)});
    s.add({s.x({511}, -20, 20, &generator_of<generators::exponents>), s.x({511}, -20, 20, &generator_of<generators::exponents>)});
    s.add({s.x({65536}, 0, 0, &generator_of<generators::all_of_16_bits>), s.x({1}, 3, 3, &generator_of<generators::constant>)});
    const auto a = [&](const shape& n) { return s.x(n, S::range.low, S::range.high); };
    const auto b = [&](const shape& n) { return s.x(n, S::range_b.low, S::range_b.high); };
    for (const shape_pair& p : broadcasts) s.add({a(p.a), b(p.b)}, {}, differentiable);
    for (const shape& n : flat_shapes) s.add({a(n), b(n)}, {}, differentiable);
    s.add({ordered(a({12, 17}), {1, 0}), b({12, 17})}, {}, differentiable);
    s.add({ordered(a({3, 4, 5}), {2, 0, 1}), ordered(b({3, 4, 5}), {1, 0, 2})}, {}, differentiable);
    if (s.program() != s.accum()) s.add({a({9, 8}), s.wide({8}, S::range_b.low, S::range_b.high)});  // bf16 with f32 gives f32
    for (int k = 0; k < s.repeats(); ++k) {
      const std::int64_t m = s.size(k, 0, 1, 12), n = s.size(k, 1, 1, 200);
      s.add({a({m, n}), b(k % 3 == 0 ? shape{n} : k % 3 == 1 ? shape{m, 1} : shape{m, n})}, {}, differentiable);
    }
    s.put({.kind = case_kind::refusal, .in = {a({2, 3}), b({2, 4})}});
    s.put({.kind = case_kind::refusal, .in = {a({5}), b({4})}});
  }
  static constexpr bool differentiable = requires(double x) { S::da(x, x); };

 private:
  constexpr binary_spec() = default;
  friend S;
};

}  // namespace isotope::conform
