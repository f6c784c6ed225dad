#pragma once
#include "../../op/pool.hpp"
#include "../reduction_axes.hpp"
#include "../spec.hpp"

namespace isotope::conform {

template <> struct op_spec<op::pool> : spec_basis {
  static constexpr std::array inputs{operand_role{.name = "x", .differentiable = false}, operand_role{"starts", holds::integers, false}};
  static constexpr std::array outputs{result_role{"y"}};
  static constexpr std::array fields{attribute_field{"first", attribute_kind::flag, 0, 0},
                                     attribute_field{"normalise", attribute_kind::flag, 1, 0}};
  static constexpr numeric_policy policy{.sums = "rows in an order of the length and the width alone, in f32 or wider",
                                         .contracts = true,
                                         .nan = "in, then its column of its sequence, or all with a norm"};
  static constexpr std::array boundary{0.0, 1.0, -1.0, 80.0};

  static void reference(const call& c, std::span<answer> y) {
    const auto is = c.constants<op::pool>();
    const std::int64_t N = c.in[0].dims[0], C = c.in[0].dims[1], B = c.in[1].dims[0] - 1;
    y[0].resize(B * C);
    const auto start = [&](std::int64_t k) { return std::int64_t(std::fmin(std::fmax(c.in[1][k], 0), double(N))); };
    std::vector<double> mean, off;
    for (std::int64_t b = 0; b < B; ++b) {
      const std::int64_t first = start(b), all = start(b + 1) - first, count = all <= 0 ? 0 : is.how == pooling_kind::first ? 1 : all;
      mean.assign(std::size_t(C), 0);
      off.assign(std::size_t(C), 0);
      double squares = 0, norm_off = 0;
      for (std::int64_t k = 0; k < C; ++k) {
        double sum = 0, magnitude = 0;
        for (std::int64_t n = first; n < first + count; ++n) sum += c.in[0][n * C + k], magnitude += std::fabs(c.in[0][n * C + k]);
        if (count == 0) continue;
        mean[std::size_t(k)] = sum / double(count);
        // A serial sum of `count` terms; a single row is a copy.
        off[std::size_t(k)] = count == 1 ? 0 : magnitude / double(count) * (double(count) + 2) * c.on.u();
        squares += mean[std::size_t(k)] * mean[std::size_t(k)];
        norm_off += std::fabs(mean[std::size_t(k)]) * off[std::size_t(k)];
      }
      const double norm = std::sqrt(squares), by = !is.normalise ? 1 : norm < op::pool::least_norm ? op::pool::least_norm : norm;
      const double of_norm = is.normalise && norm > 0 ? norm_off / squares + (sum_roundings(double(C)) + 8) * c.on.u() : 0;
      for (std::int64_t k = 0; k < C; ++k) {
        const double v = mean[std::size_t(k)] / by;
        y[0].set(b * C + k, v,
                 off[std::size_t(k)] / by + (is.normalise ? std::fabs(v) * of_norm : 0) + (is.normalise ? c.on.u() * std::fabs(v) : 0));
      }
    }
    if (c.on.stored() == 0) y[0].nmse = 1e-12;
  }

  static void cases(case_sink& s) {
    const auto add = [&](std::int64_t N, std::int64_t B, std::int64_t C, pooling_kind how, bool normalise, double high = 2) {
      s.add({s.x({N, C}, -high, high), s.integers({B + 1}, 0, double(N), &generator_of<generators::ascending>)},
            op::pool::constants{how, normalise});
    };
    for (const bool normalise : {false, true})
      for (const pooling_kind how : {pooling_kind::mean, pooling_kind::first}) {
        add(9, 3, 8, how, normalise);
        add(1, 1, 1, how, normalise);
        add(0, 2, 5, how, normalise);
        add(4, 0, 5, how, normalise);
        add(5, 9, 7, how, normalise);  // empty sequences
        add(70, 3, 33, how, normalise);
        add(300, 2, 65, how, normalise);
        if (s.how() != strength::fast) add(40, 5, 384, how, normalise);
      }
    add(20, 2, 24, pooling_kind::mean, true, 1e-14);  // below the least norm
    for (int k = 0; k < s.repeats(); ++k)
      add(s.size(k, 0, 1, 200), s.size(k, 1, 1, 8), s.size(k, 2, 1, 70), k % 3 == 1 ? pooling_kind::first : pooling_kind::mean, k % 2 == 0);
    const auto refuse = [&](const shape& x, const shape& starts) {
      s.put({.kind = case_kind::refusal, .in = {s.x(x), s.integers(starts, 0, 2, &generator_of<generators::whole>)}});
    };
    refuse({5, 7, 2}, {3});
    refuse({5, 7}, {3, 1});
    refuse({5, 7}, {0});
    s.put({.kind = case_kind::refusal, .in = {s.x({5, 7}), s.x({3})}});
  }
};

}  // namespace isotope::conform
