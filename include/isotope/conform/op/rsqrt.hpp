#pragma once
#include "../../op/rsqrt.hpp"
#include "../unary_spec.hpp"

namespace isotope::conform {
template <> struct op_spec<op::rsqrt> : unary_spec<op_spec<op::rsqrt>> {
  static constexpr std::array boundary{0.0, -0.0, -1.0, 0x1p-149, 0x1p-126, 0x1.FEp127};
  static constexpr interval range{0.01, 20};
  static double f(double x) { return 1 / std::sqrt(x); }
  /// -y / (2 x) by the y that was stored, and a rounded product with it
  static derivative slope(double x) {
    const double y = -0.5 / (x * std::sqrt(x)), m = std::fabs(y);
    return {y, m, 2 * m};
  }
};
}  // namespace isotope::conform
