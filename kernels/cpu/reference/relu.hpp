#pragma once
/// The positive part and its gradient.
#include <isotope/kernels/cpu/reference/body/block.hpp>
#include <isotope/op/relu.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::relu, P, kernels::reference> : reference::each_of<op::relu, P> {
  static double of(double x) { return x < 0 ? 0.0 : x; }
};
template <class P> struct kernel<op::relu_grad, P, kernels::reference> : reference::each_of<op::relu_grad, P> {
  static double of(double x, double dy) { return x > 0 ? dy : 0.0; }
};

}  // namespace isotope::cpu
