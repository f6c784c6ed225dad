#pragma once
/// Counter-based dropout: the mask depends on seed, step, stream and element alone.
#include <cmath>

#include <isotope/backend/cuda/launch.hpp>
#include <isotope/fatbins/reference_dropout.hpp>
#include <isotope/op/dropout.hpp>

#include "dropout.h"

namespace isotope::cuda {

template <class P> struct kernel<op::dropout, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;
  static constexpr bool counts_all_elements = true;
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &y = l.out[0];
    const auto n = y.dims.count();
    if (n == 0) return;
    const auto c = l.constants<op::dropout>();
    const gpu::reference_dropout_arguments g{x.at,
                                             y.at,
                                             l.scalars,
                                             std::uint64_t(std::ceil(c.p * 0x1p32)),
                                             n,
                                             c.first,
                                             c.run == 0 ? n : c.run,
                                             c.stride,
                                             1 - c.p,
                                             l.ordinal,
                                             std::int32_t(x.type),
                                             std::int32_t(y.type)};
    r.add(fatbins::reference_dropout, "reference_dropout", g, per_item(n), {x, scalars_of(l)}, {y});
  }
};

}  // namespace isotope::cuda
