#pragma once
/// Sine and cosine.
#include <cmath>

#include <isotope/kernels/cpu/reference/body/block.hpp>
#include <isotope/op/sine.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::sin, P, kernels::reference> : reference::each_of<op::sin, P> {
  static double of(double x) { return std::sin(x); }
};
template <class P> struct kernel<op::cos, P, kernels::reference> : reference::each_of<op::cos, P> {
  static double of(double x) { return std::cos(x); }
};

}  // namespace isotope::cpu
