#pragma once
#include "../../op/add.hpp"
#include "../../op/softmax.hpp"
#include "../reduction_axes.hpp"
#include "../spec.hpp"

namespace isotope::conform {

struct softmax_basis : spec_basis {
  static constexpr std::uint32_t version = 2;
  static constexpr std::array inputs{operand_role{"x"}};
  static constexpr std::array outputs{result_role{"y"}};
  static constexpr std::array fields{attribute_field{"axis", attribute_kind::axis, 0, -1}};
  static constexpr numeric_policy policy{
      .sums = "fixed blocks and a tree, in f32", .nan = "in, then its line", .cpu_ulps = usual_cpu_ulps, .gpu_ulps = usual_gpu_ulps};
  static constexpr std::array boundary{0.0, -infinity, infinity, nan, 80.0};

  /// One line by the definition: probabilities p, exponents z = x - max, the logarithm of the sum.
  struct line {
    std::vector<double> z, p;
    double top = -infinity, log_sum = 0;
    line(const array& x, std::int64_t first, std::int64_t step, std::int64_t n) : z(std::size_t(n)), p(std::size_t(n)) {
      for (std::int64_t k = 0; k < n; ++k) {
        const double v = x[first + k * step];
        if (std::isnan(v) || v > top) top = std::isnan(top) ? top : v;
      }
      double sum = 0;
      for (std::size_t k = 0; k < z.size(); ++k) {
        z[k] = x[first + std::int64_t(k) * step] - top;
        sum += p[k] = std::exp(z[k]);
      }
      for (double& v : p) v /= sum;
      log_sum = std::log(sum);
    }
  };
  /// Exponentials below twice the least normal number may be zero.
  static double underflow(const call& c) { return 2 * facts_of(c.on.accum()).least_normal(); }
  static double finite(double z) { return std::isfinite(z) ? std::fabs(z) : 0; }

  /// A number that can be added to integers of 3 bits exactly.
  static double most_shift(const case_sink& s) { return s.program() == s.accum() ? 65536 : 96; }

  static void shapes(case_sink& s) {
    const auto with = [](std::int64_t axis) { return op::softmax_shape::constants{.axis = axis}; };
    for (const std::int64_t n : {1, 31, 64, 65, 257, 1024, 1025}) s.add({s.x({3, n}, -8, 8)}, with(1), true);
    if (s.how() != strength::fast)  // drivers on the processor compile a kernel for each number of blocks that an invocation holds
      for (const std::int64_t n : {2, 32, 33, 127, 255, 4096}) s.add({s.x({3, n}, -8, 8)}, with(1), true);
    for (std::int64_t axis = 0; axis < 3; ++axis) {
      s.add({s.x({5, 6, 7}, -8, 8)}, with(axis), true);
      s.add({ordered(s.x({5, 6, 7}, -8, 8), {1, 2, 0})}, with(axis), true);
    }
    s.add({s.x({2, 50257}, -10, 10)}, with(1), true);
    s.add({s.x({1, 50257}, 100, 3, &generator_of<generators::normal>)}, with(1));
    s.add({s.x({4, 300}, -300, 300)}, with(1), true);
    s.add({s.x({24, 24}, 0, 0, &generator_of<generators::specials>)}, with(0));
    s.add({s.x({24, 24}, 0, 0, &generator_of<generators::specials>)}, with(1));
    s.add({s.x({6, 40}, 0, 0, &generator_of<generators::key_mask>)}, with(1));
    s.add({s.x({3, 9}, -infinity, 0, &generator_of<generators::constant>)}, with(1));
    s.add({s.x({0, 9})}, with(1));
    for (int k = 0; k < s.repeats(); ++k) s.add({s.x({s.size(k, 0, 1, 12), s.size(k, 1, 1, 400)}, -6, 6)}, with(s.size(k, 2, 0, 1)), true);
    for (const std::int64_t n : {31, 65, 257}) s.add({s.x({3, n}, -1, 1)}, with(1), true);  // no element is too small to be noticed
    s.put({.kind = case_kind::refusal, .attr = with(2), .in = {s.x({2, 3})}});
    s.put(
        {.kind = case_kind::law,
         .law = 0,
         .attr = with(1),
         .in = {s.x({7, 130}, -8, 8, &generator_of<generators::whole>), s.x({7, 1}, 0, most_shift(s), &generator_of<generators::whole>)}});
  }
};

/// f(x + c) = f(x) for a number c per line, with integers such that x + c is exact: within the errors of both sides, and the mean square of f.
template <class Op> struct shift_law {
  static law::sides build(std::span<const tensor<tape>> x, const attributes& a) {
    const auto at = place::current();
    return {apply<Op>(at, a, x[0] + x[1]), apply<Op>(at, a, x[0])};
  }
  static void slack(const call& c, answer& right) {
    std::array<answer, 1> y;
    op_spec<Op>::reference(c, y);
    for (std::size_t i = 0; i < right.slack.size(); ++i) right.slack[i] = 2 * y[0].slack[i] + c.on.stored() * std::fabs(right.value[i]);
    right.nmse = y[0].nmse;
  }
};

template <> struct op_spec<op::softmax> : softmax_basis {
  static constexpr std::array laws{law{"shift", &shift_law<op::softmax>::build, &shift_law<op::softmax>::slack}};
  /// z is rounded, so p is off by |z| u and the errors of the exponential and the sum, all relative. NMSE <= 1e-12.
  static void reference(const call& c, std::span<answer> y) {
    y[0].resize(c.in[0].dims.count());
    for_each_line(c.in[0].dims, int(c.constants<op::softmax_shape>().axis), [&](std::int64_t first, std::int64_t step, std::int64_t n) {
      const line l(c.in[0], first, step, n);
      for (std::int64_t k = 0; k < n; ++k) {
        const double p = l.p[std::size_t(k)];
        y[0].set(
            first + k * step, p,
            std::isnan(p) ? 0 : p * c.on.u() * (finite(l.z[std::size_t(k)]) + 3 * c.on.ulps() + sum_roundings(double(n))) + underflow(c));
      }
    });
    if (c.on.stored() == 0) y[0].nmse = 1e-12;
  }
  /// dx = p (dy - sum p dy), with the stored p.
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    dx[0].resize(c.in[0].dims.count());
    for_each_line(c.in[0].dims, int(c.constants<op::softmax_shape>().axis), [&](std::int64_t first, std::int64_t step, std::int64_t n) {
      const line l(c.in[0], first, step, n);
      const double fixed = (4 * c.on.ulps() + 2 * sum_roundings(double(n))) * c.on.u() + 2 * c.on.stored();
      double dot = 0, magnitude = 0;
      for (std::int64_t k = 0; k < n; ++k) {
        const double term = l.p[std::size_t(k)] * dy[0][first + k * step];
        dot += term;
        magnitude += std::fabs(term) * (fixed + finite(l.z[std::size_t(k)]) * c.on.u());
      }
      for (std::int64_t k = 0; k < n; ++k) {
        const double p = l.p[std::size_t(k)], g = dy[0][first + k * step];
        dx[0].set(first + k * step, p * (g - dot),
                  p * (magnitude + (std::fabs(g) + std::fabs(dot)) * (fixed + finite(l.z[std::size_t(k)]) * c.on.u())) +
                      underflow(c) * (1 + std::fabs(g) + std::fabs(dot)));
      }
    });
  }
  static void cases(case_sink& s) { shapes(s); }
};

template <> struct op_spec<op::log_softmax> : softmax_basis {
  static constexpr std::array laws{law{"shift", &shift_law<op::log_softmax>::build, &shift_law<op::log_softmax>::slack}};
  static double off(const call& c, const line& l, std::size_t k) {
    double spread = 0;  // the sum's relative error is its terms'
    for (std::size_t j = 0; j < l.p.size(); ++j) spread += std::isnan(l.p[j]) ? 0 : l.p[j] * finite(l.z[j]);
    return c.on.u() * (finite(l.z[k]) + finite(l.log_sum) + spread + 3 * c.on.ulps() + sum_roundings(double(l.p.size())));
  }
  static void reference(const call& c, std::span<answer> y) {
    y[0].resize(c.in[0].dims.count());
    for_each_line(c.in[0].dims, int(c.constants<op::softmax_shape>().axis), [&](std::int64_t first, std::int64_t step, std::int64_t n) {
      const line l(c.in[0], first, step, n);
      const double base = n > 0 ? off(c, l, 0) - c.on.u() * finite(l.z[0]) : 0;
      for (std::int64_t k = 0; k < n; ++k)
        y[0].set(first + k * step, l.z[std::size_t(k)] - l.log_sum, base + c.on.u() * finite(l.z[std::size_t(k)]));
    });
    if (c.on.stored() == 0) y[0].nmse = 1e-12;
  }
  /// dx = dy - exp(y) sum dy, with the stored y.
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    dx[0].resize(c.in[0].dims.count());
    for_each_line(c.in[0].dims, int(c.constants<op::softmax_shape>().axis), [&](std::int64_t first, std::int64_t step, std::int64_t n) {
      const line l(c.in[0], first, step, n);
      double sum = 0, magnitude = 0;
      for (std::int64_t k = 0; k < n; ++k) sum += dy[0][first + k * step], magnitude += std::fabs(dy[0][first + k * step]);
      const double base = n > 0 ? off(c, l, 0) - c.on.u() * finite(l.z[0]) : 0;
      for (std::int64_t k = 0; k < n; ++k) {
        const double p = l.p[std::size_t(k)], g = dy[0][first + k * step], y = std::fabs(l.z[std::size_t(k)] - l.log_sum);
        dx[0].set(first + k * step, g - p * sum,
                  p * magnitude *
                          (base + (y + finite(l.z[std::size_t(k)]) + sum_roundings(double(n)) + 3 * c.on.ulps()) * c.on.u() +
                           1.1 * y * c.on.stored()) +
                      2 * c.on.u() * std::fabs(g) + underflow(c) * (1 + magnitude));
      }
    });
  }
  static void cases(case_sink& s) { shapes(s); }
};

}  // namespace isotope::conform
