#pragma once
/// Running sums along one axis, bound by bytes. Along a contiguous axis a team scans each row block by block; along other axes an invocation takes a
/// row.
#include <isotope/kernels/vulkan/reference/cumsum.hpp>
#include <isotope/op/cumsum.hpp>
#include <isotope/shaders/cumsum.hpp>
#include <isotope/shaders/cumsum_columns.hpp>

#include <isotope/kernels/vulkan/rows/flat.hpp>

namespace isotope::vulkan {

template <class P> struct kernel<op::cumsum, P, kernels::portable> {
  static constexpr std::uint32_t inplace = 1;
  static constexpr std::int64_t scratch(const step_shapes& s) { return portable::scratch_below<op::cumsum, P>(s); }
  static void record(const launch& l, recording& r) {
    using portable::word;
    const view &x = l.in[0], &y = l.out[0];
    const reference::axis_rows a(x.dims, l.constants<op::cumsum>().axis);
    const bool reverse = l.constants<op::cumsum>().reverse;
    if (a.rows == 0) return;
    if (a.inner > 1) {
      const struct {
        std::uint64_t x, y;
        std::uint32_t cols, n, inner;
      } push{x.at, y.at, a.rows, a.n, a.inner};
      r.add(shaders::cumsum_columns, portable::flat(l).add(x.type).add(reverse), push, per_invocation(a.rows, portable::flat_group), {x},
            {y});
      return;
    }
    if (!portable::all_aligned(x, y)) return portable::fall_through<op::cumsum, P>(l, r, "cumsum: the rows are no whole vectors");
    const bool wide = a.n % 4 == 0;
    const auto t = portable::team::streaming(*l.device, portable::blocks_of_row(a.n, wide), 1);
    const struct {
      std::uint64_t x, y;
      std::uint32_t rows, n;
    } push{x.at, y.at, a.rows, a.n};
    r.add(shaders::cumsum, portable::of_rows(l, t, wide).add(x.type).add(reverse), push, t.take(a.rows), {x}, {y}).subgroup =
        l.device->subgroup;
  }
};

}  // namespace isotope::vulkan
