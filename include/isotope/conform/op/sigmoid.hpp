#pragma once
#include "../../op/sigmoid.hpp"
#include "../unary_spec.hpp"

namespace isotope::conform {
template <> struct op_spec<op::sigmoid> : unary_spec<op_spec<op::sigmoid>> {
  static constexpr std::array boundary{0.0, 88.8, -88.8, -104.0, 17.4};
  static double f(double x) { return 1 / (1 + std::exp(-x)); }
  /// y (1 - y) by the y that was stored
  static derivative slope(double x) {
    const double y = f(x);
    return {y * f(-x), y * (1 + y), y * std::fabs(1 - 2 * y)};
  }
};
}  // namespace isotope::conform
