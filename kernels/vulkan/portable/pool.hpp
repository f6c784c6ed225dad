#pragma once
/// One row of each of several packed sequences, in f32.
#include <isotope/kernels/vulkan/reference/pool.hpp>
#include <isotope/kernels/vulkan/rows/rows.hpp>
#include <isotope/shaders/pool.hpp>

namespace isotope::vulkan {

template <class P> struct kernel<op::pool, P, kernels::portable> {
  static void record(const launch& l, recording& r) {
    using portable::word;
    const auto c = l.constants<op::pool>();
    const view &x = l.in[0], &starts = l.in[1], &y = l.out[0];
    const std::int64_t C = y.dims[1], workgroup = portable::workgroup(*l.device, 512);
    if (y.dims.count() == 0) return;
    if (!portable::loads_as_f32(x.type)) return portable::fall_through<op::pool, P>(l, r, "the format is not f32, bf16 or f16");
    if (portable::divide_up(C, 4) > workgroup) return portable::fall_through<op::pool, P>(l, r, "rows are too long");
    const bool wide = C % 4 == 0 && x.strides[0] % 4 == 0 && y.strides[0] % 4 == 0 && portable::all_aligned(x, y);
    const struct {
      std::uint64_t x, starts, y;
      std::uint32_t x_stride, y_stride, N, B, C;
    } push{x.at, starts.at, y.at, word(x.strides[0]), word(y.strides[0]), word(x.dims[0]), word(y.dims[0]), word(C)};
    r.add(shaders::pool,
          portable::of_rows(l, {workgroup, workgroup, 1}, wide).add(x.type).add(c.how == pooling_kind::first).add(c.normalise), push,
          cover(y.dims[0], 1), {x, starts}, {y})
        .subgroup = l.device->subgroup;
  }
};

}  // namespace isotope::vulkan
