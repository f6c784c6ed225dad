#pragma once
#include "../../op/cross_entropy.hpp"
#include "softmax.hpp"

namespace isotope::conform {

template <> struct op_spec<op::cross_entropy> : spec_basis {
  static constexpr std::array inputs{operand_role{"logits"}, operand_role{"targets", holds::integers, false}};
  static constexpr std::array outputs{result_role{"loss", holds::accumulated}, result_role{"top", holds::accumulated},
                                      result_role{"sum", holds::accumulated}};
  static constexpr std::uint32_t version = 2;
  static constexpr numeric_policy policy{.sums = "fixed blocks and a tree, in f32",
                                         .nan = "in a row that counts, then out",
                                         .cpu_ulps = usual_cpu_ulps,
                                         .gpu_ulps = usual_gpu_ulps};
  static constexpr std::array boundary{0.0, -infinity, 80.0, 16384.0};

  static constexpr std::array fields{attribute_field{"classes", attribute_kind::integer, 0, 0}};  // 0: every column
  static std::int64_t classes(const call& c) {
    return c.constants<op::cross_entropy>().classes == 0 ? c.in[0].dims.cols() : c.constants<op::cross_entropy>().classes;
  }
  static bool counts(double target, std::int64_t V) { return target >= 0 && target < double(V); }
  /// Returns the relative error of the sum of exponentials: that of each exponent z, of the exponential and of the sum.
  static double off_sum(const call& c, const softmax_basis::line& l) {
    double spread = 0;
    for (std::size_t k = 0; k < l.p.size(); ++k) spread += l.p[k] * softmax_basis::finite(l.z[k]);
    return c.on.u() * (spread + 3 * c.on.ulps() + sum_roundings(double(l.p.size())));
  }
  static void reference(const call& c, std::span<answer> y) {
    const std::int64_t N = c.in[0].dims.cols(), V = classes(c), R = c.in[1].dims.count();
    y[0].resize(1);
    y[1].resize(R);
    y[2].resize(R);
    double counted = 0, sum = 0, off = 0, magnitude = 0;
    for (std::int64_t r = 0; r < R; ++r) {
      const softmax_basis::line l(c.in[0], r * N, 1, V);
      const double sum_of_row = std::exp(l.log_sum), off_row = off_sum(c, l);
      y[1].set(r, std::isnan(l.log_sum) ? nan : l.top, 0);
      y[2].set(r, sum_of_row, sum_of_row * off_row);
      if (!counts(c.in[1][r], V)) continue;
      const double z = l.z[std::size_t(c.in[1][r])], loss = l.log_sum - z;
      counted += 1, sum += loss, magnitude += std::fabs(loss);
      off += off_row + c.on.u() * (softmax_basis::finite(z) + (2 + 3 * c.on.ulps()) * std::fabs(l.log_sum));
    }
    if (counted > 0) y[0].set(0, sum / counted, (off + magnitude * (sum_roundings(double(R)) + 2) * c.on.u()) / counted);
    y[1].nmse = y[2].nmse = 1e-12;
  }
  /// dlogits = dloss (p - onehot) / counted rows
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    const std::int64_t N = c.in[0].dims.cols(), V = classes(c), R = c.in[1].dims.count();
    dx[0].resize(R * N);
    dx[0].nmse = c.on.stored() == 0
                     ? 1e-12
                     : 0x1p-16;  // targets' elements are much alike, and rounding may put all of them off by half a unit in the last place
    double counted = 0;
    for (std::int64_t r = 0; r < R; ++r) counted += counts(c.in[1][r], V) ? 1 : 0;
    for (std::int64_t r = 0; r < R; ++r) {
      if (!counts(c.in[1][r], V)) continue;
      const softmax_basis::line l(c.in[0], r * N, 1, V);
      const double off = off_sum(c, l), g = dy[0][0] / counted;
      for (std::int64_t k = 0; k < V; ++k) {
        const double p = l.p[std::size_t(k)], z = softmax_basis::finite(l.z[std::size_t(k)]), hit = double(k) == c.in[1][r] ? 1 : 0;
        dx[0].set(r * N + k, g * (p - hit), std::fabs(g) * (p * (off + (z + 3 * c.on.ulps() + 8) * c.on.u()) + 8 * hit * c.on.u()));
      }
    }
  }
  /// The loss of logits + c equals that of the logits, for integers such that logits + c is exact.
  static law::sides shifted(std::span<const tensor<tape>> x, const attributes& a) {
    const auto at = place::current();
    return {apply<op::cross_entropy>(at, a, x[0] + x[2], x[1]), apply<op::cross_entropy>(at, a, x[0], x[1])};
  }
  static void slack_of_shift(const call& c, answer& right) {
    std::array<answer, 3> y;
    reference(c, y);
    right.slack[0] = 2 * y[0].slack[0];
  }
  static constexpr std::array laws{law{"shift", &shifted, &slack_of_shift}};

  static void cases(case_sink& s) {
    const auto add = [&](shape rows, std::int64_t V, double low = -8, double high = 8,
                         const generator* ids = &generator_of<generators::stray_ids>) {
      shape x = rows;
      x.push(V);
      s.add({s.x(x, low, high), s.integers(rows, 0, double(V), ids)}, {}, true);
    };
    for (const std::int64_t V : {1, 2, 31, 32, 33, 64, 257, 1024, 1025, 4099}) add({6}, V);
    for (const std::int64_t R : {1, 2, 63, 65, 300, 1025}) add({R}, 17);
    for (const auto& [V, N] : {std::pair(50, 64), std::pair(257, 260), std::pair(1000, 1024)}) {  // a padded vocabulary
      const op::cross_entropy::constants padded{.classes = V};
      s.add({s.x({7, N}, -8, 8), s.integers({7}, 0, double(V), &generator_of<generators::stray_ids>)}, padded, true);
    }
    add({}, 9, -8, 8, &generator_of<generators::whole>);
    add({2, 3, 4}, 50);
    add({3}, 50257, -10, 10);
    add({4}, 300, -300, 300);
    for (const double off : {1e3, 1e4, 1e5}) add({6}, 257, off, off + 8);  // far from zero
    for (int k = 0; k < s.repeats(); ++k) add({s.size(k, 0, 1, 60)}, s.size(k, 1, 2, 500));
    s.add({s.x({5, 7}), s.integers({5}, -1, -1, &generator_of<generators::constant>)}, {},
          true);  // no row counts
    s.add({s.x({5, 40}, 0, 0, &generator_of<generators::key_mask>), s.integers({5}, 0, 0, &generator_of<generators::constant>)});
    s.put({.kind = case_kind::refusal, .in = {s.x({5, 7}), s.integers({4}, 0, 7, &generator_of<generators::whole>)}});
    s.put({.kind = case_kind::refusal, .in = {s.x({5, 7}), s.x({5})}});
    s.put({.kind = case_kind::law,
           .law = 0,
           .in = {s.x({7, 130}, -8, 8, &generator_of<generators::whole>), s.integers({7}, 0, 130, &generator_of<generators::whole>),
                  s.x({7, 1}, 0, softmax_basis::most_shift(s), &generator_of<generators::whole>)}});
  }
};

}  // namespace isotope::conform
