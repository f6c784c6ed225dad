#pragma once
/// Square root and its gradient.
#include <cmath>

#include <isotope/kernels/cpu/reference/body/block.hpp>
#include <isotope/op/sqrt.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::sqrt, P, kernels::reference> : reference::each_of<op::sqrt, P> {
  static double of(double x) { return std::sqrt(x); }
};
template <class P> struct kernel<op::sqrt_grad, P, kernels::reference> : reference::each_of<op::sqrt_grad, P> {
  static double of(double y, double dy) { return dy / (2 * y); }
};

}  // namespace isotope::cpu
