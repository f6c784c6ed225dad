#pragma once
/// Comparisons return 1 or 0; select reads them.
#include <isotope/kernels/cpu/reference/body/block.hpp>
#include <isotope/op/select.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::less, P, kernels::reference> : reference::each_of<op::less, P> {
  static double of(double a, double b) { return a < b ? 1.0 : 0.0; }
};
template <class P> struct kernel<op::equal, P, kernels::reference> : reference::each_of<op::equal, P> {
  static double of(double a, double b) { return a == b ? 1.0 : 0.0; }
};
template <class P> struct kernel<op::select, P, kernels::reference> : reference::each_of<op::select, P> {
  static double of(double c, double a, double b) { return c != 0 ? a : b; }
};

}  // namespace isotope::cpu
