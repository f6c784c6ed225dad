#pragma once
#include "../../op/top_k.hpp"
#include "../reduction_axes.hpp"
#include "../spec.hpp"

#include <algorithm>
#include <numeric>

namespace isotope::conform {

template <> struct op_spec<op::top_k> : spec_basis {
  static constexpr track on = track::strict;
  static constexpr std::array inputs{operand_role{"x"}};
  static constexpr std::array outputs{result_role{"values", holds::floating, comparison::exact},
                                      result_role{"indices", holds::integers, comparison::exact}};
  static constexpr std::array fields{attribute_field{"k", attribute_kind::integer, 0, 1}};
  static constexpr numeric_policy policy{.nan = "above all numbers"};
  static constexpr std::array boundary{0.0, -0.0, infinity, nan};

  /// The first k of the row in descending order; of equals, the one that comes first. 0 and -0 are equal.
  static void reference(const call& c, std::span<answer> y) {
    const array& x = c.in[0];
    const std::int64_t n = x.dims[-1], k = c.constants<op::top_k>().k, rows = n == 0 ? 0 : x.dims.count() / n;
    y[0].resize(rows * k);
    y[1].resize(rows * k);
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    for (std::int64_t r = 0; r < rows; ++r) {
      std::iota(order.begin(), order.end(), r * n);
      std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](std::int64_t a, std::int64_t b) {
        if (std::isnan(x[a]) != std::isnan(x[b])) return std::isnan(x[a]);
        if (!std::isnan(x[a]) && x[a] != x[b]) return x[a] > x[b];
        return a < b;
      });
      for (std::int64_t i = 0; i < k; ++i) {
        y[0].set(r * k + i, x[order[std::size_t(i)]]);
        y[1].set(r * k + i, double(order[std::size_t(i)] - r * n));
      }
    }
  }
  static void cases(case_sink& s) {
    const auto with = [](std::int64_t k) { return op::top_k::constants{.k = k}; };
    for (const std::int64_t n : {1, 2, 31, 64, 65, 257, 1025})
      for (const std::int64_t k : {std::int64_t(1), std::min<std::int64_t>(n, 5)}) s.add({s.x({3, n})}, with(k));
    s.add({s.x({7})}, with(7));
    s.add({s.x({2, 3, 40})}, with(40));
    s.add({ordered(s.x({5, 6, 7}), {1, 2, 0})}, with(3));
    s.add({s.x({9, 40}, -3, 3, &generator_of<generators::whole>)}, with(12));  // ties
    s.add({s.x({9, 40}, 1, 1, &generator_of<generators::constant>)}, with(4));
    s.add({s.x({24, 24}, 0, 0, &generator_of<generators::specials>)}, with(9));
    s.add({s.x({2, 50257}, 0, 1, &generator_of<generators::normal>)}, with(40));
    s.add({s.x({0, 9})}, with(2));
    for (int k = 0; k < s.repeats(); ++k) {
      const std::int64_t n = s.size(k, 1, 1, 300);
      s.add({s.x({s.size(k, 0, 1, 20), n})}, with(s.size(k, 2, 1, std::min<std::int64_t>(n, 16))));
    }
    for (const std::int64_t k : {0, 4}) s.put({.kind = case_kind::refusal, .attr = with(k), .in = {s.x({2, 3})}});
  }
};

}  // namespace isotope::conform
