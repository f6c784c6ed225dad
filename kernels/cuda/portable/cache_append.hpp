#pragma once
/// Copies rows of keys and values to their places in the caches, a row per block.
#include <isotope/fatbins/cache_append.hpp>
#include <isotope/kernels/cuda/reference/cache_append.hpp>
#include <isotope/kernels/cuda/rows/rows.hpp>

#include "cache_append.h"

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::cache_append, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    const view &k = l.in[2], &v = l.in[3], &sequence = l.in[4], &position = l.in[5], &keys = l.out[0], &values = l.out[1];
    const op::cache_sizes size(keys.dims);
    if (k.dims.count() == 0) return;
    constexpr std::int64_t most = std::int64_t(1) << 31;
    if (size.T >= most || size.B >= most || size.G * size.D >= most || k.dims[0] >= most)
      return portable::fall_through<op::cache_append, P>(l, r, "a size is too large for 32 bits");
    const std::int64_t bytes = size_of(keys.type), elems = 16 / bytes;
    const bool wide =
        size.D % elems == 0 && k.strides[0] % elems == 0 && v.strides[0] % elems == 0 && portable::all_aligned(k, v, keys, values);
    const std::int64_t unit = wide ? elems : 1;
    const gpu::cache_append_arguments a{keys.at,
                                        values.at,
                                        k.at,
                                        v.at,
                                        sequence.at,
                                        position.at,
                                        k.strides[0] / unit,
                                        v.strides[0] / unit,
                                        k.dims[0],
                                        size.B,
                                        size.T,
                                        std::int32_t(size.G),
                                        std::int32_t(size.D / unit)};
    auto& d = r.add(fatbins::cache_append,
                    wide         ? "cache_append_16"
                    : bytes == 4 ? "cache_append_4"
                                 : "cache_append_2",
                    a, per_block(k.dims[0], 128), {k, v, sequence, position, keys, values}, {keys, values});
    d.starts_early = true;
  }
};

}  // namespace isotope::cuda
