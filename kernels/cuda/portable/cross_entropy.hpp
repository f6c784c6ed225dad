#pragma once
/// Mean negative log-likelihood of the targets and its gradient. Bound by bytes: one read of the logits forward, a read and a write
/// backward.
#include <isotope/kernels/cuda/portable/cross_entropy.h>
#include <isotope/fatbins/cross_entropy.hpp>
#include <isotope/kernels/cuda/reference/cross_entropy.hpp>
#include <isotope/op/cross_entropy.hpp>
#include <isotope/op/cross_entropy_part.hpp>

#include <isotope/kernels/cuda/rows/rows.hpp>

namespace isotope::cuda {
namespace portable {

/// Records one block over the targets: y = mean of x over the rows that count or, for the gradient, x divided by their number.
inline void record_counted_rows(recording& r, const view& targets, std::int64_t V, const view& x, const view& y, bool gradient) {
  const gpu::counted_rows_operands a{targets.at, x.at, y.at, targets.dims.count(), std::int32_t(V), gradient};
  r.add(fatbins::cross_entropy, "cross_entropy_rows", a, per_block(1, 1024), {targets, x}, {y});
}
inline bool logits_are_wide(std::int64_t N, const view& x, const view& y) { return N % vector_elems(x.type) == 0 && all_aligned(x, y); }

}  // namespace portable

template <GpuPrecision P> struct kernel<op::cross_entropy, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return std::max(4 * s.in[1].count(), portable::scratch_below<op::cross_entropy, P>(s));
  }
  static void record(const launch& l, recording& r) {
    constexpr portable::by_format functions{"cross_entropy_f32", "cross_entropy_bf16", "cross_entropy_f16"};
    const view &logits = l.in[0], &targets = l.in[1], &loss = l.out[0], &tops = l.out[1], &sums = l.out[2];
    const std::int64_t N = logits.dims.cols(), V = l.constants<op::cross_entropy>().classes, rows = targets.dims.count();
    if (V == 0 || N > portable::longest_row)
      return portable::fall_through<op::cross_entropy, P>(l, r, "cross_entropy: no classes, or too many");
    view losses;
    losses.at = l.scratch;
    losses.bytes = 4 * rows;
    if (rows > 0) {
      const gpu::cross_entropy_operands a{logits.at,
                                          targets.at,
                                          tops.at,
                                          sums.at,
                                          losses.at,
                                          0,
                                          0,
                                          rows,
                                          std::int32_t(N),
                                          std::int32_t(V),
                                          1,
                                          portable::logits_are_wide(N, logits, logits),
                                          std::int32_t(V),
                                          0};
      const std::int64_t threads = std::clamp<std::int64_t>(portable::round_up(portable::divide_up(V, 32), 32), 32, 256);
      r.add(fatbins::cross_entropy, functions.of(logits.type), a, per_block(rows, std::uint32_t(threads)), {logits, targets},
            {tops, sums, losses});
    }
    portable::record_counted_rows(r, targets, V, losses, loss, false);
  }
};

namespace portable {

/// The gradient of rows of V classes, of which column 0 is class `first` of `all`.
template <class Op, class P>
void record_cross_entropy_grad(const launch& l, recording& r, std::int64_t V, std::int64_t all, std::int64_t first) {
  constexpr by_format functions{"cross_entropy_grad_f32", "cross_entropy_grad_bf16", "cross_entropy_grad_f16"};
  constexpr std::int64_t fewest_blocks = 1024;  // on rows that are too few for a device, several blocks work
  const view &logits = l.in[0], &targets = l.in[1], &tops = l.in[2], &sums = l.in[3], &dloss = l.in[4], &dlogits = l.out[0];
  const std::int64_t N = logits.dims.cols(), rows = targets.dims.count();
  if (rows * N == 0) return;
  if (N > longest_row || all > longest_row || logits.type != dlogits.type)
    return fall_through<Op, P>(l, r, "cross_entropy_grad: too many classes, or two formats");
  view factor;
  factor.at = l.scratch;
  factor.bytes = 4;
  record_counted_rows(r, l.in[l.in.size() > 5 ? 5 : 1], all, dloss, factor, true);
  const std::int64_t threads = std::clamp<std::int64_t>(round_up(divide_up(N, 32), 32), 32, 256);
  const std::int64_t pieces = std::min(divide_up(N, 32 * threads), divide_up(fewest_blocks, rows));
  const gpu::cross_entropy_operands a{logits.at,
                                      targets.at,
                                      tops.at,
                                      sums.at,
                                      0,
                                      factor.at,
                                      dlogits.at,
                                      rows,
                                      std::int32_t(N),
                                      std::int32_t(V),
                                      std::int32_t(pieces),
                                      logits_are_wide(N, logits, dlogits),
                                      std::int32_t(all),
                                      std::int32_t(first)};
  r.add(fatbins::cross_entropy, functions.of(logits.type), a, per_block(rows * pieces, std::uint32_t(threads)),
        {logits, targets, tops, sums, factor}, {dlogits});
}

}  // namespace portable

template <GpuPrecision P> struct kernel<op::cross_entropy_grad, P, kernels::portable> {
  static constexpr std::uint32_t inplace = 1;
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return std::max<std::int64_t>(4, portable::scratch_below<op::cross_entropy_grad, P>(s));
  }
  static void record(const launch& l, recording& r) {
    const std::int64_t V = l.constants<op::cross_entropy>().classes;
    portable::record_cross_entropy_grad<op::cross_entropy_grad, P>(l, r, V, V, 0);
  }
};

template <GpuPrecision P> struct kernel<op::cross_entropy_part_grad, P, kernels::portable> {
  static constexpr std::uint32_t inplace = 1;
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return std::max<std::int64_t>(4, portable::scratch_below<op::cross_entropy_part_grad, P>(s));
  }
  static void record(const launch& l, recording& r) {
    const auto c = l.constants<op::cross_entropy_part_grad>();
    portable::record_cross_entropy_grad<op::cross_entropy_part_grad, P>(l, r, c.classes, c.all, c.first);
  }
};

}  // namespace isotope::cuda
