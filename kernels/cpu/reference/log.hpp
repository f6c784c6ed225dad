#pragma once
/// y[i] = ln x[i].
#include <cmath>

#include <isotope/backend/cpu/launch.hpp>
#include <isotope/op/log.hpp>

#include <isotope/kernels/cpu/reference/body/block.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::log, P, kernels::reference> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    reference::each<typename P::accum>(in, out, n, [](double x) { return std::log(x); });
  }
};

}  // namespace isotope::cpu
