#pragma once
/// One row of each of several packed sequences, in f32.
#include <array>
#include <cstddef>
#include <string_view>

#include <isotope/fatbins/pool.hpp>
#include <isotope/kernels/cuda/reference/pool.hpp>
#include <isotope/kernels/cuda/rows/rows.hpp>

#include "pool.h"

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::pool, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &y = l.out[0];
    if (y.dims.count() == 0) return;
    if (x.type != dtype::f32 && x.type != dtype::bf16 && x.type != dtype::f16)
      return portable::fall_through<op::pool, P>(l, r, "the format is not f32, bf16 or f16");
    const gpu::pool_arguments a = pool_arguments_of(l);
    const std::int64_t elems = 16 / size_of(x.type);
    const bool wide = a.C % elems == 0 && a.x_stride % elems == 0 && a.y_stride % elems == 0 && portable::all_aligned(x, y);
    if (a.C / (wide ? elems : 1) > gpu::pool_threads) return portable::fall_through<op::pool, P>(l, r, "rows too long");
    static constexpr std::array<std::array<std::string_view, 2>, 3> functions{
        {{"pool_f32", "pool_f32_wide"}, {"pool_bf16", "pool_bf16_wide"}, {"pool_f16", "pool_f16_wide"}}};
    dispatch& d = r.add(fatbins::pool,
                        functions[x.type == dtype::f32    ? 0
                                  : x.type == dtype::bf16 ? 1
                                                          : 2][wide ? 1 : 0],
                        a, per_block(a.B, gpu::pool_threads), {x, l.in[1]}, {y});
    d.starts_early = true;
    if (wide) d.host.output = offsetof(gpu::pool_arguments, y_host);
  }
};

}  // namespace isotope::cuda
