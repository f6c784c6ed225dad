#pragma once
#include "../../op/relu.hpp"
#include "../unary_spec.hpp"

namespace isotope::conform {
template <> struct op_spec<op::relu> : unary_spec<op_spec<op::relu>> {
  static constexpr track on = track::strict;
  static constexpr std::array boundary{0.0, -0.0, 0x1p-126, -0x1p-126, nan};
  static constexpr numeric_policy policy{};
  static double f(double x) { return x <= 0 ? 0 : x; }  // NaN gives NaN
  static derivative slope(double x) { return double(x > 0); }
};
}  // namespace isotope::conform
