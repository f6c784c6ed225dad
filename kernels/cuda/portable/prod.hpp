#pragma once
/// Products of rows and their gradient, bound by bytes: a team per row. The reference kernel handles other sets of axes.
#include <isotope/kernels/cuda/portable/scan.h>
#include <isotope/fatbins/prod.hpp>
#include <isotope/kernels/cuda/reference/prod.hpp>
#include <isotope/op/prod.hpp>

#include <isotope/kernels/cuda/rows/reduction.hpp>

namespace isotope::cuda {

template <GpuPrecision P> struct kernel<op::prod, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    const std::int64_t pieces = portable::divide_up(s.in[0].count(), portable::row_pieces::piece) + s.out[0].count();
    return std::max(4 * pieces, portable::scratch_below<op::prod, P>(s));
  }
  static void record(const launch& l, recording& r) {
    constexpr portable::by_format functions{"row_prod_f32", "row_prod_bf16", "row_prod_f16"};
    const view &x = l.in[0], &y = l.out[0];
    if (y.dims.count() == 0) return;
    const auto rows = portable::merged_reduction(x, l.constants<op::prod>().axes).rows();
    if (x.dims.count() > 0 && portable::all_load_as_f32(x, y) && rows) return portable::record_rows(l, r, functions, *rows, x, y);
    portable::fall_through<op::prod, P>(l, r, x.dims.count() == 0 ? "product of nothing" : "product over axes that are no rows");
  }
};

template <GpuPrecision P> struct kernel<op::prod_grad, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return std::max(4 * s.in[0].count(), portable::scratch_below<op::prod_grad, P>(s));
  }
  static void record(const launch& l, recording& r) {
    constexpr portable::by_format forward{"prod_before_f32", "prod_before_bf16", "prod_before_f16"},
        back{"prod_grad_f32", "prod_grad_bf16", "prod_grad_f16"};
    const view &x = l.in[0], &dy = l.in[1], &dx = l.out[0];
    if (dx.dims.count() == 0) return;
    if (x.type != dx.type || !portable::all_load_as_f32(x, dy)) return portable::fall_through<op::prod_grad, P>(l, r, "prod: two formats");
    const std::int64_t rows = x.dims[0], n = x.dims[1], run = portable::vector_elems(x.type);
    const portable::row_team t = portable::row_team::of(*l.device, rows, n, run, 256);
    const bool wide = n % run == 0 && portable::all_aligned(x, dx) && l.scratch % 16 == 0;
    const range before = portable::elements(l.scratch, rows * n, dtype::f32);
    const gpu::prod_grad_operands a{x.at, dy.at, dx.at, l.scratch, rows, n, t.size, std::int32_t(dy.type), wide};
    r.add(fatbins::prod, forward.of(x.type), a, t.blocks, {x}, {before});
    r.add(fatbins::prod, back.of(x.type), a, t.blocks, {x, dy, before}, {dx});
  }
};

}  // namespace isotope::cuda
