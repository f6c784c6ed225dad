#pragma once
/// y[i] = a[i] - b[i].
#include <isotope/kernels/cpu/reference/body/block.hpp>
#include <isotope/op/sub.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::sub, P, kernels::reference> : reference::each_of<op::sub, P> {
  static double of(double a, double b) { return a - b; }
};

}  // namespace isotope::cpu
