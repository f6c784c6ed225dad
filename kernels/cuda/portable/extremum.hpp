#pragma once
/// Maximum, minimum and argmax of rows, bound by bytes. The reference kernel handles other sets of axes.
#include <isotope/kernels/cuda/reference/extremum.hpp>
#include <isotope/op/extremum.hpp>

#include <isotope/kernels/cuda/rows/reduction.hpp>

namespace isotope::cuda {
namespace portable {

template <class Op, class P> struct extremum_of {
  static constexpr std::int64_t scratch(const step_shapes& s) { return scratch_below<Op, P>(s); }
  static void record(const launch& l, recording& r) {
    constexpr by_format functions{"row_extremum_f32", "row_extremum_bf16", "row_extremum_f16"};
    constexpr bool place = std::is_same_v<Op, op::argmax>;
    const view &x = l.in[0], &y = l.out[0];
    if (y.dims.count() == 0) return;
    const std::int64_t mask = place ? std::int64_t(1) << l.constants<op::argmax>().axis : l.constants<op::extremum>().axes;
    const auto s = merged_reduction(x, mask).rows();
    if (!s || s->n == 0 || s->n > longest_row || !loads_as_f32(x.type)) return fall_through<Op, P>(l, r, "extremum: the axes are no rows");
    grid blocks;
    gpu::row_operands a = row_pieces::operands(l, *s, x, y, 1, 0, blocks);
    a.least = std::is_same_v<Op, op::min>;
    a.place = place;
    r.add(fatbins::reduce, functions.of(x.type), a, blocks, {x}, {y});
  }
};

}  // namespace portable

template <GpuPrecision P> struct kernel<op::max, P, kernels::portable> : portable::extremum_of<op::max, P> {};
template <GpuPrecision P> struct kernel<op::min, P, kernels::portable> : portable::extremum_of<op::min, P> {};
template <GpuPrecision P> struct kernel<op::argmax, P, kernels::portable> : portable::extremum_of<op::argmax, P> {};

}  // namespace isotope::cuda
