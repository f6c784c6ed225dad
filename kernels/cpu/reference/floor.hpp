#pragma once
/// The largest whole number that is not larger.
#include <cmath>

#include <isotope/kernels/cpu/reference/body/block.hpp>
#include <isotope/op/floor.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::floor, P, kernels::reference> : reference::each_of<op::floor, P> {
  static double of(double x) { return std::floor(x); }
};

}  // namespace isotope::cpu
