#pragma once
/// One row of each of several packed sequences.
#include <isotope/backend/cuda/launch.hpp>
#include <isotope/fatbins/reference_pool.hpp>
#include <isotope/op/pool.hpp>

#include "pool.h"

namespace isotope::cuda {

inline gpu::pool_arguments pool_arguments_of(const launch& l) {
  const auto c = l.constants<op::pool>();
  const view &x = l.in[0], &starts = l.in[1], &y = l.out[0];
  gpu::pool_arguments g{};
  g.x = x.at;
  g.starts = starts.at;
  g.y = y.at;
  g.x_stride = x.strides[0];
  g.y_stride = y.strides[0];
  g.N = x.dims[0];
  g.B = y.dims[0];
  g.C = y.dims[1];
  g.least_norm = op::pool::least_norm;
  g.first = c.how == pooling_kind::first ? 1 : 0;
  g.normalise = c.normalise ? 1 : 0;
  g.type = std::int32_t(x.type);
  return g;
}

template <class P> struct kernel<op::pool, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    if (l.out[0].dims.count() == 0) return;
    const gpu::pool_arguments g = pool_arguments_of(l);
    r.add(fatbins::reference_pool, "reference_pool", g, per_block(g.B, 256), {l.in[0], l.in[1]}, {l.out[0]});
  }
};

}  // namespace isotope::cuda
