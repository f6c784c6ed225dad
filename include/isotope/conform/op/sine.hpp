#pragma once
#include "../../op/sine.hpp"
#include "../unary_spec.hpp"

namespace isotope::conform {
/// Where a kernel changes its reduction: at pi/4 and 1/2, beyond 2^20 on a processor; and numbers that lie beside multiples of pi/2.
inline constexpr std::array sine_boundary{0.0,        -0.0,      0.5,       0.7853982,     1.5707964,
                                          -3.1415927, 1048576.0, 1048577.0, 0x1.6ac5b2p+7, 0x1.FEp127};

template <> struct op_spec<op::sin> : unary_spec<op_spec<op::sin>> {
  static constexpr std::array boundary = sine_boundary;
  static double f(double x) { return std::sin(x); }
  static derivative slope(double x) { return {std::cos(x), std::fabs(std::cos(x)), std::fabs(std::cos(x))}; }  // the cosine is rounded
};
template <> struct op_spec<op::cos> : unary_spec<op_spec<op::cos>> {
  static constexpr std::array boundary = sine_boundary;
  static double f(double x) { return std::cos(x); }
  static derivative slope(double x) { return {-std::sin(x), std::fabs(std::sin(x)), std::fabs(std::sin(x))}; }  // the sine is rounded
};
}  // namespace isotope::conform
