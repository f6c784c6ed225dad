#pragma once
/// y[i] = a[i] / b[i], and the gradient of b.
#include <isotope/kernels/cpu/reference/body/block.hpp>
#include <isotope/op/div.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::div, P, kernels::reference> : reference::each_of<op::div, P> {
  static double of(double a, double b) { return a / b; }
};
template <class P> struct kernel<op::div_grad, P, kernels::reference> : reference::each_of<op::div_grad, P> {
  static double of(double a, double b, double dy) { return -(dy / b) * (a / b); }
};

}  // namespace isotope::cpu
