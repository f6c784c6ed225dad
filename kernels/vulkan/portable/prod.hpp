#pragma once
/// Products of rows and their gradient, bound by bytes: a team per row. The reference kernel handles other sets of axes.
#include <isotope/kernels/vulkan/reference/prod.hpp>
#include <isotope/op/prod.hpp>
#include <isotope/shaders/prod_grad.hpp>
#include <isotope/shaders/row_prod.hpp>

#include <isotope/kernels/vulkan/rows/reduction.hpp>

namespace isotope::vulkan {
template <class P> struct kernel<op::prod, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    const std::int64_t pieces = portable::divide_up(s.in[0].count(), portable::row_pieces::piece) + s.out[0].count();
    return std::max(4 * pieces, portable::scratch_below<op::prod, P>(s));
  }
  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &y = l.out[0];
    if (y.dims.count() == 0) return;
    const auto rows = portable::merged_reduction(x, l.constants<op::prod>().axes).rows();
    if (x.dims.count() > 0 && portable::loads_as_f32(x.type) && portable::aligned(x) && rows)
      return portable::record_rows(l, r, shaders::row_prod, *rows, x, y);
    portable::fall_through<op::prod, P>(l, r, x.dims.count() == 0 ? "product of nothing" : "product over axes that are no rows");
  }
};

template <class P> struct kernel<op::prod_grad, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return 4 * portable::round_up(s.in[0].count(), 4); }
  static void record(const launch& l, recording& r) {
    using portable::word;
    const view &x = l.in[0], &dy = l.in[1], &dx = l.out[0];
    if (dx.dims.count() == 0) return;
    if (!portable::all_aligned(x, dx)) return portable::fall_through<op::prod_grad, P>(l, r, "prod: the rows are no whole vectors");
    const std::int64_t rows = x.dims[0], n = x.dims[1];
    const bool wide = n % 4 == 0;
    const auto t = portable::team::streaming(*l.device, portable::blocks_of_row(n, wide), 1);
    const range before = portable::elements(l.scratch, rows * n, dtype::f32);
    const struct {
      std::uint64_t x, dy, dx, before;
      std::uint32_t rows, n;
    } push{x.at, dy.at, dx.at, l.scratch, word(rows), word(n)};
    const auto pass = [&](bool back, std::vector<range> reads, std::vector<range> writes) {
      r.add(shaders::prod_grad, portable::of_rows(l, t, wide).add(x.type).add(dy.type).add(back), push, t.take(rows), std::move(reads),
            std::move(writes))
          .subgroup = l.device->subgroup;
    };
    pass(false, {x}, {before});
    pass(true, {x, dy, before}, {dx});
  }
};

}  // namespace isotope::vulkan
