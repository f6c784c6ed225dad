#pragma once
/// Root-mean-square normalisation and its gradient.
#include <isotope/op/rms_norm.hpp>

#include "norm.hpp"

namespace isotope::vulkan {

template <class P> struct kernel<op::rms_norm, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;
  static void record(const launch& l, recording& r) {
    reference::norm(l, r, {l.in[0], l.in[1], nullptr, l.out[0], nullptr, l.out[1], l.constants<op::rms_norm>().epsilon});
  }
};

template <class P> struct kernel<op::rms_norm_grad, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 0b1001;  // dweight is complete before dx overwrites x or dy
  static constexpr std::int64_t scratch(const step_shapes& s) { return reference::norm_grad_bytes(s.in[2].count(), s.in[1].count(), 1); }
  static void record(const launch& l, recording& r) {
    reference::norm_grad(l, r, {l.in[0], l.in[1], nullptr, l.in[2], l.in[3], l.out[0], l.out[1], nullptr});
  }
};

}  // namespace isotope::vulkan
