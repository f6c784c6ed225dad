#pragma once
/// Powers.
#include <cmath>

#include <isotope/kernels/cpu/reference/body/block.hpp>
#include <isotope/op/pow.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::pow, P, kernels::reference> : reference::each_of<op::pow, P> {
  static double of(double a, double b) { return std::pow(a, b); }
};

}  // namespace isotope::cpu
