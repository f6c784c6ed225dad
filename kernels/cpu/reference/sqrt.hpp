#pragma once
/// Square root and its gradient.
#include <cmath>

#include <isotope/backend/cpu/launch.hpp>
#include <isotope/op/sqrt.hpp>

#include <isotope/kernels/cpu/reference/body/block.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::sqrt, P, kernels::reference> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    reference::each<typename P::accum>(in, out, n, [](double x) { return std::sqrt(x); });
  }
};
template <class P> struct kernel<op::sqrt_grad, P, kernels::reference> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    reference::each<typename P::accum>(in, out, n, [](double y, double dy) { return dy / (2 * y); });
  }
};

}  // namespace isotope::cpu
