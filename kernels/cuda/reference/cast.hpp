#pragma once
/// Conversions between formats.
#include <isotope/fatbins/reference_cast.hpp>
#include <isotope/op/cast.hpp>

#include "cast.h"
#include "items.hpp"

namespace isotope::cuda {

template <class P> struct kernel<op::cast, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &y = l.out[0];
    const std::int64_t n = y.dims.count();
    if (n == 0) return;
    const gpu::cast_arguments a{tensor_of(x), y.at, n, reference::number_of(y.type)};
    r.add(fatbins::reference_cast, "reference_cast", a, per_item(n), {x}, {y});
  }
};

}  // namespace isotope::cuda
