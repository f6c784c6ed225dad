#pragma once
#include "../../op/erf.hpp"
#include "../unary_spec.hpp"

namespace isotope::conform {
template <> struct op_spec<op::erf> : unary_spec<op_spec<op::erf>> {
  static constexpr std::array boundary{0.0, 0.9, -0.9, 3.92, -4.0, 4.01};
  static double f(double x) { return std::erf(x); }
  /// 2 / sqrt(pi) exp(-x^2) by four ops: x^2 is rounded, which the exponential multiplies by x^2, and so are the exponential and its
  /// multiple.
  static derivative slope(double x) {
    const double y = 1.12837916709551257390 * std::exp(-x * x);
    return {y, y * (1 + x * x), y * (2 + x * x)};
  }
};
}  // namespace isotope::conform
