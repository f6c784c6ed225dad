#pragma once
#include "../../op/cumsum.hpp"
#include "../reduction_axes.hpp"
#include "../spec.hpp"

namespace isotope::conform {

template <> struct op_spec<op::cumsum> : spec_basis {
  static constexpr std::array inputs{operand_role{"x"}};
  static constexpr std::array outputs{result_role{"y"}};
  static constexpr std::array fields{attribute_field{"axis", attribute_kind::axis, 0, -1},
                                     attribute_field{"reverse", attribute_kind::flag, 1, 0}};
  static constexpr numeric_policy policy{.sums = "blocks of a row and a tree, in f32", .nan = "in, then out there and behind it"};
  static constexpr std::array boundary{0.0, -0.0, infinity, nan, 0x1p100};

  /// |e| <= (log2 n + 72) u times the sum of the magnitudes up to the element
  static void sums(const call& c, const array& x, bool reverse, answer& y) {
    y.resize(x.dims.count());
    for_each_line(x.dims, int(c.constants<op::cumsum>().axis), [&](std::int64_t first, std::int64_t step, std::int64_t n) {
      double sum = 0, magnitude = 0;
      for (std::int64_t k = 0; k < n; ++k) {
        const std::int64_t i = first + (reverse ? n - 1 - k : k) * step;
        sum += x[i];
        magnitude += std::fabs(x[i]);
        y.set(i, sum, std::isfinite(magnitude) ? sum_roundings(double(k + 1)) * c.on.u() * magnitude : 0);
      }
    });
  }
  static void reference(const call& c, std::span<answer> y) { sums(c, c.in[0], c.constants<op::cumsum>().reverse, y[0]); }
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    sums(c, dy[0], !c.constants<op::cumsum>().reverse, dx[0]);
  }
  static void cases(case_sink& s) {
    const auto with = [](std::int64_t axis, bool reverse = false) { return op::cumsum::constants{.axis = axis, .reverse = reverse}; };
    for (const std::int64_t n : {1, 2, 31, 64, 65, 257, 1024, 1025, 4099}) s.add({s.x({3, n})}, with(1, n % 2 == 0), true);
    for (std::int64_t axis = 0; axis < 3; ++axis)
      for (const bool reverse : {false, true}) {
        s.add({s.x({5, 6, 7})}, with(axis, reverse), true);
        s.add({ordered(s.x({5, 6, 7}), {1, 2, 0})}, with(axis, reverse), true);
      }
    s.add({s.x({700, 40})}, with(0), true);
    s.add({s.x({2, 50257}, 0.1, 0.1, &generator_of<generators::constant>)}, with(1));
    s.add({s.x({24, 24}, 0, 0, &generator_of<generators::specials>)}, with(0));
    s.add({s.x({24, 24}, 0, 0, &generator_of<generators::specials>)}, with(1, true));
    s.add({s.x({0, 9})}, with(1));
    s.add({s.x({9, 0})}, with(1));
    for (int k = 0; k < s.repeats(); ++k)
      s.add({s.x({s.size(k, 0, 1, 12), s.size(k, 1, 1, 400)})}, with(s.size(k, 2, 0, 1), s.size(k, 3, 0, 1) == 1), true);
    s.put({.kind = case_kind::refusal, .attr = with(2), .in = {s.x({2, 3})}});
  }
};

}  // namespace isotope::conform
