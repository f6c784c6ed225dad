#pragma once
#include "../../op/log.hpp"
#include "../unary_spec.hpp"

namespace isotope::conform {
template <> struct op_spec<op::log> : unary_spec<op_spec<op::log>> {
  static constexpr std::array boundary{0.0, -0.0, 1.0, -1.0, 0x1p-149, 0x1.FEp127};
  static constexpr interval range{0.01, 20};
  static double f(double x) { return std::log(x); }
  static derivative slope(double x) { return 1 / x; }
};
}  // namespace isotope::conform
