#pragma once
#include "../../op/floor.hpp"
#include "../unary_spec.hpp"

namespace isotope::conform {
template <> struct op_spec<op::floor> : unary_spec<op_spec<op::floor>> {
  static constexpr track on = track::strict;
  static constexpr std::array outputs{result_role{"y", holds::floating, comparison::exact}};
  static constexpr std::array boundary{0.0, -0.0, -0x1p-126, 0.5, 1.5, -8388607.5, 8388608.0, -16777216.0};
  static constexpr numeric_policy policy{};
  static double f(double x) { return std::floor(x); }
};
}  // namespace isotope::conform
