#pragma once
#include "../../op/silu.hpp"
#include "../unary_spec.hpp"

namespace isotope::conform {
template <> struct op_spec<op::silu> : unary_spec<op_spec<op::silu>> {
  static constexpr std::array boundary{0.0, -1.2785, 88.8, -88.8, -104.0};
  static double f(double x) { return std::isinf(x) && x < 0 ? 0 : x / (1 + std::exp(-x)); }
  static derivative slope(double x) {
    const double s = 1 / (1 + std::exp(-x)), r = 1 / (1 + std::exp(x));
    return {s * (1 + x * r), s * (1 + std::fabs(x))};
  }
};
}  // namespace isotope::conform
