#pragma once
/// Sums and means over any axes.
#include <isotope/op/sum.hpp>

#include "total.hpp"

namespace isotope::cuda {
namespace reference {

struct reduction {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return total_bytes(s.out[0].count(), op::reduction::length(s.in[0], s.constants<op::reduction>().axes));
  }
  static void record(const launch& l, recording& r, bool mean) {
    const view& x = l.in[0];
    const std::int64_t axes = l.constants<op::reduction>().axes;
    total(r, x, axes, l.out[0], l.scratch, mean, op::reduction::length(x.dims, axes));
  }
};

}  // namespace reference

template <class P> struct kernel<op::sum, P, kernels::reference> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return reference::reduction::scratch(s); }
  static void record(const launch& l, recording& r) { reference::reduction::record(l, r, false); }
};
template <class P> struct kernel<op::mean, P, kernels::reference> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return reference::reduction::scratch(s); }
  static void record(const launch& l, recording& r) { reference::reduction::record(l, r, true); }
};

}  // namespace isotope::cuda
