#pragma once
/// The k largest elements of rows and their indices.
#include <isotope/kernels/cuda/portable/scan.h>
#include <isotope/fatbins/top_k.hpp>
#include <isotope/kernels/cuda/reference/top_k.hpp>
#include <isotope/op/top_k.hpp>

#include <isotope/kernels/cuda/rows/rows.hpp>

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::top_k, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return portable::scratch_below<op::top_k, P>(s); }
  static void record(const launch& l, recording& r) {
    constexpr portable::by_format functions{"top_k_f32", "top_k_bf16", "top_k_f16"};
    const view &x = l.in[0], &values = l.out[0], &places = l.out[1];
    const std::int64_t n = x.dims[-1], rows = n == 0 ? 0 : x.dims.count() / n;
    if (rows == 0) return;
    if (n > portable::longest_row || values.type != x.type || !portable::loads_as_f32(x.type))
      return portable::fall_through<op::top_k, P>(l, r, "top_k: rows too long, or two formats");
    const portable::row_team t = portable::row_team::of(*l.device, rows, n, 8, rows < l.device->multiprocessors ? 1024 : 256);
    const gpu::top_k_operands a{x.at, values.at, places.at, rows, std::int32_t(n), std::int32_t(l.constants<op::top_k>().k), t.size};
    r.add(fatbins::top_k, functions.of(x.type), a, t.blocks, {x}, {values, places});
  }
};

}  // namespace isotope::cuda
