#pragma once
#include "../../op/rms_norm.hpp"
#include "../norm_basis.hpp"

namespace isotope::conform {

template <> struct op_spec<op::rms_norm> : norm_basis {
  static constexpr std::array inputs{operand_role{"x"}, operand_role{.name = "weight", .parameter = true}};
  static constexpr std::array outputs{result_role{"y"}, result_role{"rstd", holds::accumulated}};

  static double rstd_of(const call& c, std::int64_t first, std::int64_t C) {
    double power = 0;
    for (std::int64_t k = 0; k < C; ++k) power += c.in[0][first + k] * c.in[0][first + k];
    return 1 / std::sqrt(power / double(C) + c.constants<op::rms_norm>().epsilon);
  }
  static void reference(const call& c, std::span<answer> y) {
    const std::int64_t C = c.in[0].dims.cols(), R = c.in[0].dims.rows();
    y[0].resize(R * C);
    y[1].resize(R);
    const double off = (sum_roundings(double(C)) + 8) * c.on.u();  // relative: all terms are positive
    for (std::int64_t r = 0; r < R; ++r) {
      const double rstd = rstd_of(c, r * C, C);
      y[1].set(r, rstd, rstd * off);
      for (std::int64_t k = 0; k < C; ++k) {
        const double v = c.in[0][r * C + k] * rstd * c.in[1][k];
        y[0].set(r * C + k, v, std::fabs(v) * (off + 2 * c.on.u()));
      }
    }
    if (c.on.stored() == 0) y[0].nmse = 1e-12;
  }
  /// With e = dy w and h = x rstd: dx = rstd (e - h avg(e h)), dw = sum over rows of dy h.
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    const std::int64_t C = c.in[0].dims.cols(), R = c.in[0].dims.rows();
    dx[0].resize(R * C);
    dx[1].resize(C);
    const double off = (2 * sum_roundings(double(C)) + 16) * c.on.u(),
                 down = (sum_roundings(double(R)) + sum_roundings(double(C)) + 8) * c.on.u();
    for (std::int64_t r = 0; r < R; ++r) {
      const double rstd = rstd_of(c, r * C, C);
      double e2 = 0, m2 = 0;
      for (std::int64_t k = 0; k < C; ++k) {
        const double t = dy[0][r * C + k] * c.in[1][k] * c.in[0][r * C + k] * rstd / double(C);
        e2 += t, m2 += std::fabs(t);
      }
      for (std::int64_t k = 0; k < C; ++k) {
        const double h = c.in[0][r * C + k] * rstd, g = dy[0][r * C + k], e = g * c.in[1][k];
        dx[0].set(r * C + k, rstd * (e - h * e2), rstd * (std::fabs(e) + 2 * std::fabs(h) * m2) * off);
        dx[1].add(k, g * h, std::fabs(g * h) * down);
      }
    }
  }
  static constexpr std::array laws{law{"sums of gradients", &sums_of_gradients<op::rms_norm, op::rms_norm_grad>},
                                   law{"column sums of gradients", &column_sums_of_gradients<op::rms_norm, op::rms_norm_grad>,
                                       [](const call& c, answer& right) { column_sums_slack<op_spec, 2>(c, right); }}};
  static void cases(case_sink& s) {
    const auto more = [&](const operand_recipe& x) {
      const dim C = x.dims.axis(-1);
      return std::vector<operand_recipe>{x, s.x({C}, 0.5, 1.5)};
    };
    shapes(s, more);
    sum_cases(s, 0, more);
    sum_cases(s, 1, more);
  }
};

}  // namespace isotope::conform
