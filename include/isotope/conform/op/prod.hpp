#pragma once
#include "../../op/prod.hpp"
#include "sum.hpp"

namespace isotope::conform {

template <> struct op_spec<op::prod> : reduction_spec {
  static constexpr std::array outputs{result_role{"y"}};
  static constexpr numeric_policy policy{.sums = "products in fixed blocks and a tree, in f32"};
  static constexpr std::array boundary{0.0, -0.0, 1.0, -1.0, 0x1p-20};

  static double bound(const call& c, double terms, double y) { return std::isfinite(y) ? (terms + 2) * c.on.u() * std::fabs(y) : 0; }

  /// |e| <= (n - 1) u |y| in any order
  static void reference(const call& c, std::span<answer> y) {
    const reduced_shape r(c.in[0].dims, c.constants<op::prod>().axes);
    y[0].resize(r.y.count());
    for (double& v : y[0].value) v = 1;
    for_each_index(r.x, [&](std::int64_t i, const extents& at) { y[0].value[std::size_t(r.position(at))] *= c.in[0][i]; });
    for (std::int64_t k = 0; k < r.y.count(); ++k) {
      const double v = y[0].value[std::size_t(k)];
      y[0].set(k, v, bound(c, double(r.length()), v));
    }
  }
  /// dy times the product of the other elements.
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    const reduced_shape r(c.in[0].dims, c.constants<op::prod>().axes);
    std::vector<std::vector<std::int64_t>> terms(static_cast<std::size_t>(r.y.count()));
    for_each_index(r.x, [&](std::int64_t i, const extents& at) { terms[std::size_t(r.position(at))].push_back(i); });
    dx[0].resize(r.x.count());
    for (std::size_t k = 0; k < terms.size(); ++k) {
      double product = dy[0].at[k];
      for (const std::int64_t i : terms[k]) {
        dx[0].value[std::size_t(i)] = product;
        product *= c.in[0][i];
      }
      product = 1;
      for (auto i = terms[k].rbegin(); i != terms[k].rend(); product *= c.in[0][*i++]) {
        const double v = dx[0].value[std::size_t(*i)] * product;
        dx[0].set(*i, v, bound(c, double(r.length()), v));
      }
    }
  }
  /// Magnitudes whose logarithms sum to about zero, so that no partial product overflows or underflows.
  static void cases(case_sink& s) {
    const auto with = [](std::int64_t mask, bool keep = false) { return op::prod::constants{.axes = mask, .keep = keep}; };
    for (const std::int64_t n : {1, 7, 33}) s.add({s.x({n})}, with(1), true);
    for (const std::int64_t n : {64, 65, 257, 1023}) s.add({s.x({3, n}, 0.5, 1.6)}, with(2), true);
    for (const std::int64_t n : {1025, 4099}) s.add({s.x({2, n}, 0.9, 1.1)}, with(2), true);
    for (std::int64_t mask = 0; mask < 8; ++mask) {
      s.add({s.x({5, 6, 7}, -1.6, -0.5)}, with(mask, (mask & 1) != 0), true);
      s.add({ordered(s.x({5, 6, 7}, -1.6, -0.5), {2, 0, 1})}, with(mask, (mask & 2) != 0), true);
    }
    s.add({s.x({2, 3, 4, 5, 2, 3}, 0.5, 1.6)}, with(0b101010), true);
    s.add({s.x({300, 33}, 0.5, 1.6)}, with(1, true), true);
    s.add({s.x({3, 40000}, 1 - 0x1p-8, 1 + 0x1p-8)}, with(2));
    s.add({s.x({40, 7}, -2, 2, &generator_of<generators::whole>)}, with(2), true);  // no zero, one zero, several zeros
    s.add({s.x({9, 40}, -3, 3, &generator_of<generators::whole>)}, with(2), true);
    s.add({s.x({576, 2}, 0, 0, &generator_of<generators::specials>)}, with(2));
    s.add({s.x({0})}, with(1));
    s.add({s.x({3, 0})}, with(2));
    for (int k = 0; k < s.repeats(); ++k)
      s.add({s.x({s.size(k, 0, 1, 40), s.size(k, 1, 1, 90)}, -1.6, -0.5)}, with(s.size(k, 2, 1, 2), k % 2 == 0), true);
    auto wide = with(2);
    wide.format = s.accum();
    s.add({s.x({6, 300}, 0.5, 1.6)}, wide);
    s.put({.kind = case_kind::refusal, .attr = with(8), .in = {s.x({2, 3})}});
  }
};

}  // namespace isotope::conform
