#pragma once
/// Root-mean-square normalisation and its gradient.
#include <isotope/op/rms_norm.hpp>

#include "norm.hpp"

namespace isotope::cuda {

template <class P> struct kernel<op::rms_norm, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;
  static void record(const launch& l, recording& r) {
    reference::norm(r, {l.in[0], l.in[1], nullptr, l.out[0], nullptr, l.out[1], l.constants<op::rms_norm>().epsilon});
  }
};

template <class P> struct kernel<op::rms_norm_grad, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 0b11001;  // dweight is complete before dx overwrites x, dy or the addend
  static constexpr bool takes_addend = true;
  static void record(const launch& l, recording& r) {
    const view* addend = l.in.size() > 4 ? &l.in[4] : nullptr;
    reference::norm_grad(r, {l.in[0], l.in[1], nullptr, l.in[2], l.in[3], l.out[0], l.out[1], nullptr, addend});
  }
};

}  // namespace isotope::cuda
