#pragma once
/// Hyperbolic tangent and its gradient.
#include <cmath>

#include <isotope/backend/cpu/launch.hpp>
#include <isotope/op/tanh.hpp>

#include <isotope/kernels/cpu/reference/body/block.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::tanh, P, kernels::reference> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    reference::each<typename P::accum>(in, out, n, [](double x) { return std::tanh(x); });
  }
};
template <class P> struct kernel<op::tanh_grad, P, kernels::reference> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    reference::each<typename P::accum>(in, out, n, [](double y, double dy) { return dy * ((1 - y) * (1 + y)); });
  }
};

}  // namespace isotope::cpu
