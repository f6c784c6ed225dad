#pragma once
/// Maximum, minimum and argmax.
#include <isotope/fatbins/reference_extremum.hpp>
#include <isotope/op/extremum.hpp>

#include "stages.hpp"

namespace isotope::cuda {
namespace reference {

enum class extremum_which { max, min, argmax };

template <extremum_which Which> struct extremum {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return stage_bytes(s.out[0].count(), op::reduction::length(s.in[0], s.constants<op::extremum>().axes));
  }
  static void record(const launch& l, recording& r) {
    stages(l, r, fatbins::reference_extremum, "reference_extremum", int(Which), l.constants<op::extremum>().axes);
  }
};

}  // namespace reference

template <class P> struct kernel<op::max, P, kernels::reference> : reference::extremum<reference::extremum_which::max> {};
template <class P> struct kernel<op::min, P, kernels::reference> : reference::extremum<reference::extremum_which::min> {};
template <class P> struct kernel<op::argmax, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const reference::axes_apart a(l.in[0], std::int64_t(1) << l.constants<op::argmax>().axis);
    constexpr int which = int(reference::extremum_which::argmax);
    reference::stage(r, fatbins::reference_extremum, "reference_extremum", which, l.in[0], a, 1, l.out[0]);
  }
};

}  // namespace isotope::cuda
