#pragma once
#include "../../op/div.hpp"
#include "../binary_spec.hpp"

namespace isotope::conform {
template <> struct op_spec<op::div> : binary_spec<op_spec<op::div>> {
  static constexpr track on = track::strict;
  static constexpr std::array boundary{0.0, -0.0, 0x1p-126, 3.0, infinity};
  static constexpr interval range_b{0.5, 4};
  static double f(double a, double b) { return a / b; }
  static double slack(const call& c, double y) {
    return c.on.gpu && std::isfinite(y) ? 5 * c.on.u() * std::fabs(y) : 0;
  }  // what a gpu promises: 2.5 ULP
  static double da(double, double b) { return 1 / b; }
  static double db(double a, double b) { return -a / (b * b); }
};
}  // namespace isotope::conform
