#pragma once
#include "../../op/sign.hpp"
#include "../unary_spec.hpp"

namespace isotope::conform {
template <> struct op_spec<op::sign> : unary_spec<op_spec<op::sign>> {
  static constexpr track on = track::strict;
  static constexpr std::array outputs{result_role{"y", holds::floating, comparison::exact}};
  static constexpr std::array boundary{0.0, -0.0, 0x1p-126, -0x1p-126, nan};
  static constexpr numeric_policy policy{};
  static double f(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
};
}  // namespace isotope::conform
