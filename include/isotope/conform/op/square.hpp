#pragma once
#include "../../op/square.hpp"
#include "../unary_spec.hpp"

namespace isotope::conform {
template <> struct op_spec<op::square> : unary_spec<op_spec<op::square>> {
  static constexpr track on = track::strict;
  static constexpr std::array boundary{0.0, 0x1p-75, 0x1p63, 0x1p64};
  static constexpr numeric_policy policy{};
  static double f(double x) { return x * x; }
  static derivative slope(double x) { return 2 * x; }
};
}  // namespace isotope::conform
