#pragma once
/// y[i] = x[i]^2.
#include <isotope/backend/cpu/launch.hpp>
#include <isotope/op/square.hpp>

#include <isotope/kernels/cpu/reference/body/block.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::square, P, kernels::reference> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    reference::each<typename P::accum>(in, out, n, [](double x) { return x * x; });
  }
};

}  // namespace isotope::cpu
