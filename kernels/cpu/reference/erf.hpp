#pragma once
/// The error function.
#include <cmath>

#include <isotope/kernels/cpu/reference/body/block.hpp>
#include <isotope/op/erf.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::erf, P, kernels::reference> : reference::each_of<op::erf, P> {
  static double of(double x) { return std::erf(x); }
};

}  // namespace isotope::cpu
