#pragma once
/// Running sums along one axis.
#include <isotope/fatbins/reference_cumsum.hpp>
#include <isotope/op/cumsum.hpp>

#include "cumsum.h"
#include "items.hpp"

namespace isotope::cuda {

template <class P> struct kernel<op::cumsum, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &y = l.out[0];
    const auto c = l.constants<op::cumsum>();
    if (x.dims.count() == 0) return;
    gpu::cumsum_arguments a{};
    a.x = x.at;
    a.y = y.at;
    a.n = x.dims[int(c.axis)];
    a.rows = x.dims.count() / a.n;
    a.inner = 1;
    for (int k = int(c.axis) + 1; k < x.dims.rank; ++k) a.inner *= x.dims[k];
    a.x_type = reference::number_of(x.type);
    a.y_type = reference::number_of(y.type);
    a.reverse = c.reverse ? 1 : 0;
    r.add(fatbins::reference_cumsum, "reference_cumsum", a, per_item(a.rows), {x}, {y});
  }
};

}  // namespace isotope::cuda
