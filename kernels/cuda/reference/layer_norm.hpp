#pragma once
/// Layer normalisation and its gradient.
#include <isotope/op/layer_norm.hpp>

#include "norm.hpp"

namespace isotope::cuda {

template <class P> struct kernel<op::layer_norm, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;
  static void record(const launch& l, recording& r) {
    reference::norm(r, {l.in[0], l.in[1], &l.in[2], l.out[0], &l.out[1], l.out[2], l.constants<op::layer_norm>().epsilon});
  }
};

template <class P> struct kernel<op::layer_norm_grad, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 0b1100001;  // dweight and dbias are complete before dx overwrites x, dy or the addend
  static constexpr bool takes_addend = true;
  static void record(const launch& l, recording& r) {
    const view* addend = l.in.size() > 6 ? &l.in[6] : nullptr;
    reference::norm_grad(r, {l.in[0], l.in[1], &l.in[3], l.in[4], l.in[5], l.out[0], l.out[1], &l.out[2], addend});
  }
};

}  // namespace isotope::cuda
