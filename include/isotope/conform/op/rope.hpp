#pragma once
#include "../../op/rope.hpp"
#include "../spec.hpp"

namespace isotope::conform {

template <> struct op_spec<op::rope> : spec_basis {
  static constexpr std::array inputs{operand_role{"x"}};
  static constexpr std::array outputs{result_role{"y"}};
  static constexpr std::array fields{attribute_field{"base", attribute_kind::number, 0, 10000},
                                     attribute_field{"first", attribute_kind::integer, 0, 0},
                                     attribute_field{"direction", attribute_kind::integer, 1, 1}};
  static constexpr numeric_policy policy{.sums = "two products", .contracts = true, .nan = "in, then its pair"};
  static constexpr std::array boundary{0.0, 1.0, 131071.0, infinity};

  /// |e| <= 4 u |pair|: angles in f64, their sine and cosine rounded, two products and a sum.
  static void rotate(const call& c, const array& x, double direction, answer& y) {
    const std::int64_t D = x.dims[3];
    y.resize(x.dims.count());
    if (c.on.stored() == 0) y.roundings = 0;  // its rounding is among the four
    shape pairs = x.dims;
    pairs.set(3, D / 2);
    for_each_index(pairs, [&](std::int64_t, const extents& at) {
      const std::int64_t p = ((at[0] * x.dims[1] + at[1]) * x.dims[2] + at[2]) * D + at[3];
      const double t =
          double(c.constants<op::rope>().first + at[1]) * std::pow(c.constants<op::rope>().base, -2 * double(at[3]) / double(D));
      const double a = x[p], b = x[p + D / 2], cosine = std::cos(t), sine = direction * std::sin(t),
                   slack = 4 * c.on.u() * std::hypot(a, b);
      y.set(p, a * cosine - b * sine, slack);
      y.set(p + D / 2, b * cosine + a * sine, slack);
    });
  }
  static void reference(const call& c, std::span<answer> y) { rotate(c, c.in[0], double(c.constants<op::rope>().direction), y[0]); }
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    rotate(c, dy[0], -double(c.constants<op::rope>().direction), dx[0]);
  }

  static void cases(case_sink& s) {
    const auto with = [](double base, std::int64_t first, std::int64_t direction = 1) {
      return op::rope::constants{.first = first, .direction = direction, .base = base};
    };
    for (const std::int64_t D : {2, 4, 6, 16, 64, 66, 128}) s.add({s.x({2, 5, 3, D})}, with(10000, 0), true);
    for (const std::int64_t S : {0, 1, 17, 64, 65, 256}) s.add({s.x({1, S, 2, 8})}, with(10000, 0), S > 0);
    for (const std::int64_t first : {1, 1023, 8191, 131000}) s.add({s.x({1, 72, 2, 32})}, with(10000, first), true);
    s.add({s.x({2, 9, 2, 16})}, with(500000, 3), true);
    s.add({s.x({2, 9, 2, 16})}, with(10000, 3, -1), true);
    s.add({ordered(s.x({2, 9, 4, 16}), {0, 2, 1, 3})}, with(10000, 0), true);
    for (int k = 0; k < s.repeats(); ++k)
      s.add({s.x({s.size(k, 0, 1, 3), s.size(k, 1, 1, 40), s.size(k, 2, 1, 4), 2 * s.size(k, 3, 1, 40)})},
            with(10000, s.size(k, 4, 0, 131072)), true);
    s.put({.kind = case_kind::refusal, .attr = with(10000, 0), .in = {s.x({1, 2, 3, 5})}});
    s.put({.kind = case_kind::refusal, .attr = with(10000, 0), .in = {s.x({2, 3, 4})}});
  }
};

}  // namespace isotope::conform
