#pragma once
/// y[i] = ln x[i].
#include <cmath>

#include <isotope/kernels/cpu/reference/body/block.hpp>
#include <isotope/op/log.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::log, P, kernels::reference> : reference::each_of<op::log, P> {
  static double of(double x) { return std::log(x); }
};

}  // namespace isotope::cpu
