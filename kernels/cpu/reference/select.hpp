#pragma once
/// Comparisons return 1 or 0; select reads them.
#include <isotope/backend/cpu/launch.hpp>
#include <isotope/op/select.hpp>

#include <isotope/kernels/cpu/reference/body/block.hpp>

namespace isotope::cpu {

template <class P> struct kernel<op::less, P, kernels::reference> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    reference::each<typename P::accum>(in, out, n, [](double a, double b) { return a < b ? 1.0 : 0.0; });
  }
};
template <class P> struct kernel<op::equal, P, kernels::reference> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    reference::each<typename P::accum>(in, out, n, [](double a, double b) { return a == b ? 1.0 : 0.0; });
  }
};
template <class P> struct kernel<op::select, P, kernels::reference> {
  static void block(const void* const* in, void* out, std::int64_t n, double) {
    reference::each<typename P::accum>(in, out, n, [](double c, double a, double b) { return c != 0 ? a : b; });
  }
};

}  // namespace isotope::cpu
