#pragma once
/// The larger and the smaller of two numbers: NaN if either is, and -0 is below 0.
#include <cmath>

#include <isotope/kernels/cpu/reference/body/block.hpp>
#include <isotope/op/maximum.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::maximum, P, kernels::reference> : reference::each_of<op::maximum, P> {
  static double of(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return a + b;
    return a < b || (a == b && std::signbit(a)) ? b : a;
  }
};
template <class P> struct kernel<op::minimum, P, kernels::reference> : reference::each_of<op::minimum, P> {
  static double of(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return a + b;
    return a < b || (a == b && std::signbit(a)) ? a : b;
  }
};

}  // namespace isotope::cpu
