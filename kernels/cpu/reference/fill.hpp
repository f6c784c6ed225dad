#pragma once
/// Fills a tensor with one number.
#include <isotope/op/fill.hpp>

#include "cast.hpp"

namespace isotope::cpu {

template <class P> struct kernel<op::fill, P, kernels::reference> {
  static void run(const launch& l) {
    const view& y = l.out[0];
    const double x = l.constants<op::fill>().x;
    for (reference::index i(y.dims); i.valid(); i.next()) reference::store_cast(y, i.in(y.strides), x);
  }
};

}  // namespace isotope::cpu
