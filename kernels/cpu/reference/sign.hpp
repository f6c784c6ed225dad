#pragma once
/// The sign.
#include <cmath>

#include <isotope/kernels/cpu/reference/body/block.hpp>
#include <isotope/op/sign.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::sign, P, kernels::reference> : reference::each_of<op::sign, P> {
  static double of(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
};

}  // namespace isotope::cpu
