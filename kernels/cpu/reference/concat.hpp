#pragma once
/// Places tensors one after another along an axis.
#include <isotope/op/concat.hpp>

#include "copy.hpp"

namespace isotope::cpu {

template <class P> struct kernel<op::concat, P, kernels::reference> {
  static void run(const launch& l) {
    const auto axis = std::size_t(l.constants<op::concat>().axis);
    std::int64_t first = 0;
    for (const view& x : l.in) {
      reference::move(x, l.out[0], first * l.out[0].strides[axis]);
      first += x.dims[int(axis)];
    }
  }
};

}  // namespace isotope::cpu
