#pragma once
/// Copies rows of keys and values to their places in the caches.
#include <isotope/backend/cuda/launch.hpp>
#include <isotope/fatbins/reference_cache_append.hpp>
#include <isotope/op/cache_append.hpp>

#include "cache_append.h"

namespace isotope::cuda {

template <class P> struct kernel<op::cache_append, P, kernels::reference> {
  static void record(const launch& l, recording& r) {
    const view &k = l.in[2], &v = l.in[3], &sequence = l.in[4], &position = l.in[5], &keys = l.out[0], &values = l.out[1];
    const op::cache_sizes size(keys.dims);
    const auto N = k.dims[0], n = N * size.G * size.D;
    if (n == 0) return;
    const gpu::reference_cache_append_arguments g{
        keys.at,      values.at, k.at,   v.at,   sequence.at, position.at, k.strides[0],
        v.strides[0], N,         size.B, size.G, size.T,      size.D,      std::int32_t(keys.type)};
    r.add(fatbins::reference_cache_append, "reference_cache_append", g, per_item(n), {k, v, sequence, position, keys, values},
          {keys, values});
  }
};

}  // namespace isotope::cuda
