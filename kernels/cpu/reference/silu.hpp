#pragma once
/// x sigmoid(x) and its gradient. At infinity they give the limits.
#include <cmath>

#include <isotope/backend/cpu/launch.hpp>
#include <isotope/op/silu.hpp>

#include <isotope/kernels/cpu/reference/body/block.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::silu, P, kernels::reference> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    reference::each<typename P::accum>(in, out, n, [](double x) { return reference::above(x, -1e4) / (1 + std::exp(-x)); });
  }
};
template <class P> struct kernel<op::silu_grad, P, kernels::reference> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    reference::each<typename P::accum>(in, out, n, [](double x, double dy) {
      const double s = 1 / (1 + std::exp(-x));
      return dy * (s * (1 + reference::within(x, 1e4) * (1 - s)));
    });
  }
};

}  // namespace isotope::cpu
