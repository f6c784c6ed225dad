#pragma once
#include "../../op/maximum.hpp"
#include "../binary_spec.hpp"

namespace isotope::conform {
template <bool Larger> struct larger_or_smaller_spec : binary_spec<larger_or_smaller_spec<Larger>> {
  static constexpr track on = track::strict;
  static constexpr std::array outputs{result_role{"y", holds::floating, comparison::exact}};
  static constexpr std::array boundary{0.0, -0.0, 1.0, -infinity, nan};
  static constexpr bool bends = true;
  static double f(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return nan;
    const bool b_is_larger = a < b || (a == b && std::signbit(a));
    return b_is_larger == Larger ? b : a;
  }
  static double da(double a, double b) { return a == b ? 0.5 : (Larger ? a > b : a < b) ? 1 : 0; }
  static double db(double a, double b) { return da(b, a); }
  static void cases(case_sink& s) {
    // Multiples of 1/16 and numbers halfway between them, so that no pair ties.
    s.add({s.x({7, 20}, 0, 181, &generator_of<generators::distinct>), s.x({7, 20}, 0, 182, &generator_of<generators::distinct>)}, {}, true);
    binary_spec<larger_or_smaller_spec>::cases(s);
  }
};
template <> struct op_spec<op::maximum> : larger_or_smaller_spec<true> {};
template <> struct op_spec<op::minimum> : larger_or_smaller_spec<false> {};
}  // namespace isotope::conform
