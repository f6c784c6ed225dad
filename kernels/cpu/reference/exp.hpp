#pragma once
/// y[i] = e^x[i].
#include <cmath>

#include <isotope/kernels/cpu/reference/body/block.hpp>
#include <isotope/op/exp.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::exp, P, kernels::reference> : reference::each_of<op::exp, P> {
  static double of(double x) { return std::exp(x); }
};

}  // namespace isotope::cpu
