#pragma once
#include "../../op/dropout.hpp"
#include "../philox_by_the_paper.hpp"
#include "../spec.hpp"

namespace isotope::conform {

template <> struct op_spec<op::dropout> : spec_basis {
  static constexpr track on = track::strict;
  static constexpr std::array inputs{operand_role{"x"}};
  static constexpr std::array outputs{result_role{"y"}};
  static constexpr std::array fields{attribute_field{"p", attribute_kind::number, 0, 0.5},
                                     attribute_field{"seed", attribute_kind::scalar, 0, 0},
                                     attribute_field{"counter", attribute_kind::scalar, 1, 0}};
  static constexpr numeric_policy policy{.nan = "in, then out where it is kept"};
  static constexpr std::array boundary{0.0, 0.5, infinity, nan};

  /// The mask is exact; 1 / (1 - p) is rounded, and its product with x.
  static void mask(const call& c, const array& x, answer& y) {
    const double p = c.constants<op::dropout>().p;
    y.resize(x.dims.count());
    for (std::int64_t i = 0; i < x.dims.count(); ++i) {
      const auto words = philox_words(c.scalars.seed, std::uint64_t(i) / 4, std::uint32_t(c.scalars.counter), c.stream);
      const bool kept = double(words[std::size_t(i % 4)]) * 0x1p-32 >= p;
      const double v = x[i] / (1 - p);
      if (kept) y.set(i, v, std::isfinite(v) ? 3 * c.on.u() * std::fabs(v) : 0);
    }
  }
  static void reference(const call& c, std::span<answer> y) { mask(c, c.in[0], y[0]); }
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) { mask(c, dy[0], dx[0]); }

  static void cases(case_sink& s) {
    for (const auto& [seed, counter] : {std::pair(0, 0), std::pair(1234567, 3)})
      for (const double p : {0.0, 0.1, 0.5, 0.9}) {
        test_case c;
        c.scalars.seed = std::uint64_t(seed) << 20;
        c.scalars.counter = std::uint64_t(counter);
        c.attr = op::dropout::constants{.p = p};
        for (const shape& n : {shape{}, shape{0}, shape{1}, shape{3}, shape{64}, shape{1023}, shape{33, 31}, shape{4097}, shape{9000}}) {
          c.in = {s.x(n)};
          s.put(c, true);
        }
        for (int k = 0; k < s.repeats() / 2; ++k) {
          c.in = {s.x({s.size(k, 0, 1, 9), s.size(k, 1, 1, 300)})};
          s.put(c, true);
        }
      }
    test_case later;  // not the first of its step
    later.stream = 3;
    later.attr = op::dropout::constants{.p = 0.5};
    later.in = {s.x({1023})};
    s.put(later, true);
    s.put({.kind = case_kind::refusal, .attr = op::dropout::constants{.p = 1}, .in = {s.x({3})}});
  }
};

}  // namespace isotope::conform
