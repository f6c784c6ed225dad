#pragma once
/// y[i] = x[i]^2.
#include <isotope/kernels/cpu/reference/body/block.hpp>
#include <isotope/op/square.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::square, P, kernels::reference> : reference::each_of<op::square, P> {
  static double of(double x) { return x * x; }
};

}  // namespace isotope::cpu
