#pragma once
/// The logistic function and its gradient.
#include <cmath>

#include <isotope/kernels/cpu/reference/body/block.hpp>
#include <isotope/op/sigmoid.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::sigmoid, P, kernels::reference> : reference::each_of<op::sigmoid, P> {
  static double of(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
};
template <class P> struct kernel<op::sigmoid_grad, P, kernels::reference> : reference::each_of<op::sigmoid_grad, P> {
  static double of(double y, double dy) { return dy * y * (1 - y); }
};

}  // namespace isotope::cpu
