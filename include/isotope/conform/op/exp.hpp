#pragma once
#include "../../op/exp.hpp"
#include "../unary_spec.hpp"

namespace isotope::conform {
template <> struct op_spec<op::exp> : unary_spec<op_spec<op::exp>> {
  static constexpr std::array boundary{0.0, 88.72, 88.73, -87.33, -103.97, -104.0};  // overflow, subnormal, zero in f32
  static constexpr interval range{-20, 20};
  static double f(double x) { return std::exp(x); }
  static derivative slope(double x) { return {std::exp(x), std::exp(x), std::exp(x)}; }
};
}  // namespace isotope::conform
