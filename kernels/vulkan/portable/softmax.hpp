#pragma once
/// Softmax and its logarithm along one axis, bound by bytes. Rows of up to 32 elements per invocation stay in registers.
#include <isotope/kernels/vulkan/reference/softmax.hpp>
#include <isotope/op/softmax.hpp>
#include <isotope/shaders/softmax.hpp>
#include <isotope/shaders/softmax_columns.hpp>
#include <isotope/shaders/softmax_grad.hpp>

#include <isotope/kernels/vulkan/rows/flat.hpp>

namespace isotope::vulkan {
namespace portable {

template <class Op, class P, bool Logs, bool Gradient> struct along_axis {
  static constexpr std::int64_t scratch(const step_shapes& s) { return scratch_below<Op, P>(s); }

  static void record(const launch& l, recording& r) {
    const view &x = l.in[0], &dy = l.in[Gradient ? 1 : 0], &y = l.out[0];
    const int axis = int(l.constants<op::softmax_shape>().axis);
    std::int64_t outer = 1, inner = 1;
    for (int k = 0; k < x.dims.rank; ++k)
      if (k != axis) (k < axis ? outer : inner) *= x.dims[k];
    const std::int64_t n = x.dims[axis];
    if (outer * inner * n == 0) return;
    std::vector<range> reads{x};
    if (Gradient) reads.push_back(dy);
    if (inner > 1) {
      const struct {
        std::uint64_t x, dy, y;
        std::uint32_t cols, n, inner;
      } push{x.at, dy.at, y.at, word(outer * inner), word(n), word(inner)};
      r.add(shaders::softmax_columns, flat(l).add(x.type).add(Logs).add(Gradient), push, per_invocation(outer * inner, flat_group),
            std::move(reads), {y});
      return;
    }
    if (!all_aligned(x, dy, y)) return fall_through<Op, P>(l, r, "softmax: the rows are no whole vectors");
    const bool wide = n % 4 == 0;
    team t = team::holding(*l.device, blocks_of_row(n, wide), 4, Gradient ? 4 : 8);
    const bool held = t.hold > 0;
    if (!held) t = {largest_workgroup(*l.device), largest_workgroup(*l.device), 4};
    const constants c = of_rows(l, t, wide).add(x.type).add(Logs).add(held);
    if constexpr (Gradient) {
      const struct {
        std::uint64_t y, dy, dx;
        std::uint32_t rows, n;
      } push{x.at, dy.at, y.at, word(outer), word(n)};
      r.add(shaders::softmax_grad, c, push, t.take(outer), std::move(reads), {y}).subgroup = l.device->subgroup;
    } else {
      const struct {
        std::uint64_t x, y;
        std::uint32_t rows, n;
      } push{x.at, y.at, word(outer), word(n)};
      r.add(shaders::softmax, c, push, t.take(outer), std::move(reads), {y}).subgroup = l.device->subgroup;
    }
  }
};

}  // namespace portable

template <class P> struct kernel<op::softmax, P, kernels::portable> : portable::along_axis<op::softmax, P, false, false> {
  static constexpr std::uint32_t inplace = 1;
};
template <class P> struct kernel<op::log_softmax, P, kernels::portable> : portable::along_axis<op::log_softmax, P, true, false> {
  static constexpr std::uint32_t inplace = 1;
};
template <class P> struct kernel<op::softmax_grad, P, kernels::portable> : portable::along_axis<op::softmax_grad, P, false, true> {
  static constexpr std::uint32_t inplace = 0b11;
};
template <class P> struct kernel<op::log_softmax_grad, P, kernels::portable> : portable::along_axis<op::log_softmax_grad, P, true, true> {
  static constexpr std::uint32_t inplace = 0b11;
};

}  // namespace isotope::vulkan
