#pragma once
#include "../../op/sub.hpp"
#include "../binary_spec.hpp"

namespace isotope::conform {
template <> struct op_spec<op::sub> : binary_spec<op_spec<op::sub>> {
  static constexpr track on = track::strict;
  static constexpr std::array boundary{0.0, -0.0, 0x1p24, 0x1.FEp127, infinity};
  static double f(double a, double b) { return a - b; }
  static double da(double, double) { return 1; }
  static double db(double, double) { return -1; }
};
}  // namespace isotope::conform
