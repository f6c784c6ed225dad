#pragma once
#include "../../op/add.hpp"
#include "../../op/fill.hpp"
#include "../../op/layer_norm.hpp"
#include "../norm_basis.hpp"

namespace isotope::conform {

template <> struct op_spec<op::layer_norm> : norm_basis {
  static constexpr std::array inputs{operand_role{"x"}, operand_role{.name = "weight", .parameter = true},
                                     operand_role{.name = "bias", .parameter = true}};
  static constexpr std::array outputs{result_role{"y"}, result_role{"mean", holds::accumulated}, result_role{"rstd", holds::accumulated}};

  /// One row: its statistics, and how far a kernel's may be off.
  struct row {
    double mean = 0, rstd = 0, off_mean = 0, off_rstd = 0;  // off_rstd is relative
    row(const call& c, std::int64_t first, std::int64_t C) {
      double magnitude = 0, variance = 0;
      for (std::int64_t k = 0; k < C; ++k) mean += c.in[0][first + k], magnitude += std::fabs(c.in[0][first + k]);
      mean /= double(C);
      for (std::int64_t k = 0; k < C; ++k) variance += (c.in[0][first + k] - mean) * (c.in[0][first + k] - mean);
      rstd = 1 / std::sqrt(variance / double(C) + c.constants<op::layer_norm>().epsilon);
      const double sums = sum_roundings(double(C)) * c.on.u();
      off_mean = sums * magnitude / double(C);
      off_rstd = sums + 8 * c.on.u() + 0.5 * rstd * rstd * off_mean * off_mean;
    }
    double h(double x) const { return (x - mean) * rstd; }
    double off_h(const call& c, double x) const {
      return rstd * (off_mean + c.on.u() * (std::fabs(x) + std::fabs(mean))) + std::fabs(h(x)) * (off_rstd + 2 * c.on.u());
    }
  };
  static void reference(const call& c, std::span<answer> y) {
    const std::int64_t C = c.in[0].dims.cols(), R = c.in[0].dims.rows();
    y[0].resize(R * C);
    y[1].resize(R);
    y[2].resize(R);
    double far = 0;  // the mean in units of the deviation
    for (std::int64_t r = 0; r < R; ++r) {
      const row s(c, r * C, C);
      y[1].set(r, s.mean, s.off_mean);
      y[2].set(r, s.rstd, s.rstd * s.off_rstd);
      far = std::fmax(far, std::fabs(s.mean) * s.rstd);
      for (std::int64_t k = 0; k < C; ++k) {
        const double x = c.in[0][r * C + k], w = c.in[1][k], b = c.in[2][k];
        y[0].set(r * C + k, s.h(x) * w + b, std::fabs(w) * s.off_h(c, x) + c.on.u() * (std::fabs(s.h(x) * w) + std::fabs(b)));
      }
    }
    if (c.on.stored() == 0) y[0].nmse = far > 10 ? 1e-10 : 1e-12;
  }
  /// With e = dy w: dx = rstd (e - avg(e) - h avg(e h)), dw = sum over rows of dy h, db of dy.
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    const std::int64_t C = c.in[0].dims.cols(), R = c.in[0].dims.rows();
    dx[0].resize(R * C);
    dx[1].resize(C);
    dx[2].resize(C);
    const double sums = (sum_roundings(double(C)) + 8) * c.on.u(), down = (sum_roundings(double(R)) + 8) * c.on.u();
    for (std::int64_t r = 0; r < R; ++r) {
      const row s(c, r * C, C);
      double e1 = 0, e2 = 0, m1 = 0, m2 = 0, o2 = 0;
      for (std::int64_t k = 0; k < C; ++k) {
        const double x = c.in[0][r * C + k], h = s.h(x), e = dy[0][r * C + k] * c.in[1][k];
        e1 += e, m1 += std::fabs(e), e2 += e * h, m2 += std::fabs(e * h), o2 += std::fabs(e) * s.off_h(c, x);
      }
      e1 /= double(C), m1 /= double(C), e2 /= double(C), m2 /= double(C), o2 /= double(C);
      for (std::int64_t k = 0; k < C; ++k) {
        const double x = c.in[0][r * C + k], h = s.h(x), g = dy[0][r * C + k], e = g * c.in[1][k], off = s.off_h(c, x);
        const double magnitude = std::fabs(e) + m1 + std::fabs(h) * m2;
        dx[0].set(r * C + k, s.rstd * (e - e1 - h * e2), s.rstd * (magnitude * (sums + s.off_rstd) + off * m2 + std::fabs(h) * o2));
        dx[1].add(k, g * h, std::fabs(g) * (std::fabs(h) * down + off));
        dx[2].add(k, g, std::fabs(g) * down);
      }
    }
  }
  static constexpr std::array laws{
      law{"affine",
          [](std::span<const tensor<tape>> x, const attributes& a) -> law::sides {
            const auto at = place::current();
            const auto one = fill(*x[0].machine, x[1].dims(), x[1].type(), 1), zero = fill(*x[0].machine, x[1].dims(), x[1].type());
            return {apply<op::layer_norm>(at, a, x[0], one, zero) * x[1] + x[2], apply<op::layer_norm>(at, a, x[0], x[1], x[2])};
          },
          [](const call& c, answer& right) {
            std::array<answer, 3> y;
            reference(c, y);
            for (std::size_t i = 0; i < right.slack.size(); ++i) {  // three results are stored on the way, of at most |y| + 2 |b|
              const double b = std::fabs(c.in[2][std::int64_t(i) % c.in[2].dims.count()]);
              right.slack[i] = 2 * y[0].slack[i] + (4 * c.on.stored() + 8 * c.on.u()) * (std::fabs(right.value[i]) + 2 * b);
            }
          }},
      law{"sums of gradients", &sums_of_gradients<op::layer_norm, op::layer_norm_grad>},
      law{"column sums of gradients", &column_sums_of_gradients<op::layer_norm, op::layer_norm_grad>,
          [](const call& c, answer& right) { column_sums_slack<op_spec, 3>(c, right); }}};
  static void cases(case_sink& s) {
    const auto more = [&](const operand_recipe& x) {
      const dim C = x.dims.axis(-1);
      return std::vector<operand_recipe>{x, s.x({C}, 0.5, 1.5), s.x({C}, -1, 1)};
    };
    shapes(s, more);
    s.put({.kind = case_kind::law, .law = 0, .attr = with(1e-5), .in = more(s.x({9, 257}))});
    sum_cases(s, 1, more);
    sum_cases(s, 2, more);
  }
};

}  // namespace isotope::conform
