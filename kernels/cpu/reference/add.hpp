#pragma once
/// y[i] = a[i] + b[i].
#include <isotope/backend/cpu/launch.hpp>
#include <isotope/op/add.hpp>

#include <isotope/kernels/cpu/reference/body/block.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::add, P, kernels::reference> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    reference::each<typename P::accum>(in, out, n, [](double a, double b) { return a + b; });
  }
};

}  // namespace isotope::cpu
