#pragma once
/// The inverse square root.
#include <cmath>

#include <isotope/kernels/cpu/reference/body/block.hpp>
#include <isotope/op/rsqrt.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::rsqrt, P, kernels::reference> : reference::each_of<op::rsqrt, P> {
  static double of(double x) { return 1 / std::sqrt(x); }
};

}  // namespace isotope::cpu
