#pragma once
/// Softmax and its logarithm along one axis, and their gradients.
#include <isotope/kernels/cuda/portable/softmax.h>
#include <isotope/fatbins/softmax.hpp>
#include <isotope/kernels/cuda/reference/softmax.hpp>
#include <isotope/op/softmax.hpp>

#include <isotope/kernels/cuda/rows/rows.hpp>

namespace isotope::cuda {
namespace portable {

template <class Op, class P, bool Logs, bool Gradient> struct along_axis {
  static constexpr std::int64_t scratch(const step_shapes& s) { return scratch_below<Op, P>(s); }

  static void record(const launch& l, recording& r) {
    constexpr by_format rows = Gradient ? by_format{"softmax_grad_f32", "softmax_grad_bf16", "softmax_grad_f16"}
                                        : by_format{"softmax_f32", "softmax_bf16", "softmax_f16"};
    constexpr by_format columns = Gradient ? by_format{"softmax_grad_columns_f32", "softmax_grad_columns_bf16", "softmax_grad_columns_f16"}
                                           : by_format{"softmax_columns_f32", "softmax_columns_bf16", "softmax_columns_f16"};
    const view &x = l.in[0], &dy = l.in[Gradient ? 1 : 0], &y = l.out[0];
    const int axis = int(l.constants<op::softmax_shape>().axis);
    std::int64_t outer = 1, inner = 1;
    for (int k = 0; k < x.dims.rank; ++k)
      if (k != axis) (k < axis ? outer : inner) *= x.dims[k];
    const std::int64_t n = x.dims[axis];
    if (outer * inner * n == 0) return;
    if (x.type != y.type || dy.type != y.type || n > longest_row)
      return fall_through<Op, P>(l, r, "softmax: rows too long, or two formats");
    gpu::softmax_operands a{x.at, dy.at, y.at, outer, n, inner, 0, Logs, 0, 0};
    std::vector<range> reads{x};
    if (Gradient) reads.push_back(dy);
    if (inner > 1) {
      r.add(fatbins::softmax, columns.of(x.type), a, per_item(outer * inner), std::move(reads), {y});
      return;
    }
    const row_team t = row_team::of(*l.device, outer, n, gpu::softmax_elems, 512);
    a.team = t.size;
    a.held = t.held;
    a.wide = n % vector_elems(x.type) == 0 && all_aligned(x, dy, y);
    r.add(fatbins::softmax, rows.of(x.type), a, t.blocks, std::move(reads), {y});
  }
};

}  // namespace portable

template <GpuPrecision P> struct kernel<op::softmax, P, kernels::portable> : portable::along_axis<op::softmax, P, false, false> {
  static constexpr std::uint32_t inplace = 1;
};
template <GpuPrecision P> struct kernel<op::log_softmax, P, kernels::portable> : portable::along_axis<op::log_softmax, P, true, false> {
  static constexpr std::uint32_t inplace = 1;
};
template <GpuPrecision P> struct kernel<op::softmax_grad, P, kernels::portable> : portable::along_axis<op::softmax_grad, P, false, true> {
  static constexpr std::uint32_t inplace = 0b11;
};
template <GpuPrecision P>
struct kernel<op::log_softmax_grad, P, kernels::portable> : portable::along_axis<op::log_softmax_grad, P, true, true> {
  static constexpr std::uint32_t inplace = 0b11;
};

}  // namespace isotope::cuda
