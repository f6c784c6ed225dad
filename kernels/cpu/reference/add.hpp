#pragma once
/// y[i] = a[i] + b[i].
#include <isotope/kernels/cpu/reference/body/block.hpp>
#include <isotope/op/add.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::add, P, kernels::reference> : reference::each_of<op::add, P> {
  static double of(double a, double b) { return a + b; }
};

}  // namespace isotope::cpu
