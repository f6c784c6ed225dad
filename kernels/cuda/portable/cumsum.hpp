#pragma once
/// Running sums along one axis, bound by bytes. Along a contiguous axis a team scans each row; along other axes a thread takes a column.
#include <isotope/kernels/cuda/portable/scan.h>
#include <isotope/fatbins/cumsum.hpp>
#include <isotope/kernels/cuda/reference/cumsum.hpp>
#include <isotope/op/cumsum.hpp>

#include <isotope/kernels/cuda/rows/rows.hpp>

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::cumsum, P, kernels::portable> {
  static constexpr std::uint32_t inplace = 1;
  static constexpr std::int64_t scratch(const step_shapes& s) { return portable::scratch_below<op::cumsum, P>(s); }
  static void record(const launch& l, recording& r) {
    constexpr portable::by_format rows{"cumsum_f32", "cumsum_bf16", "cumsum_f16"},
        columns{"cumsum_columns_f32", "cumsum_columns_bf16", "cumsum_columns_f16"};
    const view &x = l.in[0], &y = l.out[0];
    const auto c = l.constants<op::cumsum>();
    if (x.dims.count() == 0) return;
    if (x.type != y.type || !portable::loads_as_f32(x.type)) return portable::fall_through<op::cumsum, P>(l, r, "cumsum: two formats");
    gpu::cumsum_operands a{};
    a.x = x.at;
    a.y = y.at;
    a.n = x.dims[int(c.axis)];
    a.inner = 1;
    for (int k = int(c.axis) + 1; k < x.dims.rank; ++k) a.inner *= x.dims[k];
    a.rows = x.dims.count() / (a.n * a.inner);
    a.reverse = c.reverse;
    if (a.inner > 1) {
      r.add(fatbins::cumsum, columns.of(x.type), a, per_item(a.rows * a.inner), {x}, {y});
      return;
    }
    const std::int64_t run = portable::vector_elems(x.type);
    const portable::row_team t = portable::row_team::of(*l.device, a.rows, a.n, run, 256);
    a.team = t.size;
    a.wide = a.n % run == 0 && portable::all_aligned(x, y);
    r.add(fatbins::cumsum, rows.of(x.type), a, t.blocks, {x}, {y});
  }
};

}  // namespace isotope::cuda
