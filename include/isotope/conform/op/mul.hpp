#pragma once
#include "../../op/mul.hpp"
#include "../binary_spec.hpp"

namespace isotope::conform {
template <> struct op_spec<op::mul> : binary_spec<op_spec<op::mul>> {
  static constexpr track on = track::strict;
  static constexpr std::array boundary{0.0, -0.0, 0x1p-75, 0x1p64, infinity};
  static double f(double a, double b) { return a * b; }
  static double da(double, double b) { return b; }
  static double db(double a, double) { return a; }
};
}  // namespace isotope::conform
