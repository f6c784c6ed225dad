#pragma once
#include "../../op/tanh.hpp"
#include "../unary_spec.hpp"

namespace isotope::conform {
template <> struct op_spec<op::tanh> : unary_spec<op_spec<op::tanh>> {
  static constexpr std::array boundary{0.0, 0x1p-13, 9.01, -9.01, 0.625};
  static double f(double x) { return std::tanh(x); }
  /// 1 - y^2 by the y that was stored
  static derivative slope(double x) {
    const double y = std::tanh(x);
    return {1 / (std::cosh(x) * std::cosh(x)), 1 + y * y, 2 * y * y};
  }
};
}  // namespace isotope::conform
