#pragma once
/// The adjoint law: a gradient dx of cotangents v obeys <dx, u> = <v, J u> for every direction u. J u comes from differences of the op's reference in
/// f64, so that neither the gradient's kernel nor its reference defines the derivative; both are checked against it.
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "compare.hpp"

namespace isotope::conform {

class adjoint_law {
 public:
  /// @param at    operands at which the derivative is taken
  /// @param seed  selects u, uniform over [-1, 1)
  adjoint_law(const spec& of, const call& at, std::span<const array> cotangents, std::uint64_t seed)
      : of_(of), at_(at), cotangents_(cotangents) {
    for (std::size_t k = 0; k < at.in.size(); ++k) {
      const operand_role& role = of.inputs[std::min(k, of.inputs.size() - 1)];
      std::vector<double> u(at.in[k].at.size(), 0);
      if (role.differentiable && is_floating(at.in[k].type))
        for (std::size_t i = 0; i < u.size(); ++i)
          // some functions have a kink at zero: a difference across it is meaningless
          if (std::fabs(at.in[k].at[i]) > 4 * step) u[i] = 2 * unit_interval(philox(seed, i, std::uint32_t(k), 7)[0]) - 1;
      u_.push_back(std::move(u));
    }
    const double wide = slope(step);
    along_ = slope(step / 2);
    off_ = std::fabs(along_ - wide) + 0x1p-48 * magnitude_ / step;  // sums of up to 1024 terms, rounded in f64
  }
  /// Returns <v, J u> and how far the differences may be off.
  double along() const { return along_; }
  double off() const { return off_; }

  /// Returns <dx, u> and the sum of the magnitudes of its terms or of their bounds.
  struct side {
    double value = 0, magnitude = 0;
  };
  /// Checks the gradient's reference.
  side of_answers(std::span<const answer> dx) const {
    side s;
    for (std::size_t k = 0; k < u_.size() && k < dx.size(); ++k)
      for (std::size_t i = 0; i < dx[k].value.size(); ++i) add(s, dx[k].value[i] * u_[k][i], std::fabs(dx[k].value[i] * u_[k][i]));
    return s;
  }
  /// Checks a device's gradient of operand k, each number of which is within its bound of the reference.
  void add_gradient(side& s, std::size_t k, const array& dx, const answer& expected) const {
    const element_bounds bounds(dx.type, at_.on);
    for (std::size_t i = 0; i < dx.at.size(); ++i) add(s, dx.at[i] * u_[k][i], std::fabs(u_[k][i]) * bounds.of(expected, i));
  }

 private:
  static constexpr double step = 0x1p-10;  // four points: the error is step^4, and 2^-43 of the magnitudes by rounding
  const spec& of_;
  const call& at_;
  std::span<const array> cotangents_;
  std::vector<std::vector<double>> u_;
  double along_ = 0, off_ = 0, magnitude_ = 0;

  static void add(side& s, double v, double m) { s.value += v, s.magnitude += m; }

  /// <v, y(x + t u)>
  double value(double t) {
    std::vector<array> x(at_.in.begin(), at_.in.end());
    for (std::size_t k = 0; k < x.size(); ++k)
      for (std::size_t i = 0; i < x[k].at.size(); ++i)
        if (u_[k][i] != 0) x[k].at[i] += t * u_[k][i];
    std::array<answer, max_outputs> y;
    of_.reference({x, at_.attr, at_.scalars, at_.on, at_.stream}, y);
    double sum = 0, magnitude = 0;
    for (std::size_t k = 0; k < cotangents_.size(); ++k)
      for (std::size_t i = 0; i < cotangents_[k].at.size() && i < y[k].value.size(); ++i) {
        if (!std::isfinite(y[k].value[i])) continue;  // an id out of range has no slope
        sum += cotangents_[k].at[i] * y[k].value[i];
        magnitude += std::fabs(cotangents_[k].at[i] * y[k].value[i]);
      }
    magnitude_ = std::fmax(magnitude_, magnitude);
    return sum;
  }
  double slope(double h) { return (8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h); }
};

}  // namespace isotope::conform
