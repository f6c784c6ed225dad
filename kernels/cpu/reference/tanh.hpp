#pragma once
/// Hyperbolic tangent and its gradient.
#include <cmath>

#include <isotope/kernels/cpu/reference/body/block.hpp>
#include <isotope/op/tanh.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::tanh, P, kernels::reference> : reference::each_of<op::tanh, P> {
  static double of(double x) { return std::tanh(x); }
};
template <class P> struct kernel<op::tanh_grad, P, kernels::reference> : reference::each_of<op::tanh_grad, P> {
  static double of(double y, double dy) { return dy * ((1 - y) * (1 + y)); }
};

}  // namespace isotope::cpu
