#pragma once
/// x sigmoid(x) and its gradient. At infinity they give the limits.
#include <cmath>

#include <isotope/kernels/cpu/reference/body/block.hpp>
#include <isotope/op/silu.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::silu, P, kernels::reference> : reference::each_of<op::silu, P> {
  static double of(double x) { return reference::above(x, -1e4) / (1 + std::exp(-x)); }
};
template <class P> struct kernel<op::silu_grad, P, kernels::reference> : reference::each_of<op::silu_grad, P> {
  static double of(double x, double dy) {
    const double s = 1 / (1 + std::exp(-x));
    return dy * (s * (1 + reference::within(x, 1e4) * (1 - s)));
  }
};

}  // namespace isotope::cpu
