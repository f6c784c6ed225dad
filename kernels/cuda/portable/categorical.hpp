#pragma once
/// Draws classes in proportion to softmax(logits / temperature), a team of threads per row.
#include <isotope/kernels/cuda/portable/categorical.h>
#include <isotope/fatbins/categorical.hpp>
#include <isotope/kernels/cuda/reference/categorical.hpp>
#include <isotope/op/categorical.hpp>

#include <isotope/kernels/cuda/rows/rows.hpp>

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::categorical, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return portable::scratch_below<op::categorical, P>(s); }
  static void record(const launch& l, recording& r) {
    constexpr portable::by_format functions{"categorical_f32", "categorical_bf16", "categorical_f16"};
    const view &x = l.in[0], &y = l.out[0];
    const std::int64_t n = x.dims[-1], rows = y.dims.count();
    if (rows == 0) return;
    if (n > portable::longest_row || !portable::loads_as_f32(x.type))
      return portable::fall_through<op::categorical, P>(l, r, "categorical: rows too long, or a format that is not read as f32");
    const portable::row_team t = portable::row_team::of(*l.device, rows, n, 8, 1024);
    const gpu::categorical_operands a{x.at,   y.at,     l.scalars, rows, l.constants<op::categorical>().temperature, std::int32_t(n),
                                      t.size, l.ordinal};
    r.add(fatbins::categorical, functions.of(x.type), a, t.blocks, {x, scalars_of(l)}, {y});
  }
};

}  // namespace isotope::cuda
