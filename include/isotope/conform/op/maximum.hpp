#pragma once
#include "../../op/maximum.hpp"
#include "../binary_spec.hpp"

namespace isotope::conform {
template <class S> struct larger_or_smaller_spec : binary_spec<S> {
  static constexpr track on = track::strict;
  static constexpr std::array outputs{result_role{"y", holds::floating, comparison::exact}};
  static constexpr std::array boundary{0.0, -0.0, 1.0, -infinity, nan};
  static constexpr bool bends = true;
  /// The part of the gradient that the first operand has, if `larger` is chosen of the two.
  static double share(double larger, double smaller) { return larger > smaller ? 1 : larger == smaller ? 0.5 : 0; }
  static void cases(case_sink& s) {
    // Multiples of 1/16 and numbers halfway between them, so that no pair ties.
    s.add({s.x({7, 20}, 0, 181, &generator_of<generators::distinct>), s.x({7, 20}, 0, 182, &generator_of<generators::distinct>)}, {}, true);
    binary_spec<S>::cases(s);
  }
};
template <> struct op_spec<op::maximum> : larger_or_smaller_spec<op_spec<op::maximum>> {
  static double f(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return nan;
    return a < b || (a == b && std::signbit(a)) ? b : a;
  }
  static double da(double a, double b) { return share(a, b); }
  static double db(double a, double b) { return share(b, a); }
};
template <> struct op_spec<op::minimum> : larger_or_smaller_spec<op_spec<op::minimum>> {
  static double f(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return nan;
    return a < b || (a == b && std::signbit(a)) ? a : b;
  }
  static double da(double a, double b) { return share(b, a); }
  static double db(double a, double b) { return share(a, b); }
};
}  // namespace isotope::conform
