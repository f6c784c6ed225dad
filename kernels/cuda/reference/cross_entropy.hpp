#pragma once
/// Mean negative log-likelihood of the targets and its gradient; the gradient recomputes probabilities from the stored maxima and sums.
#include <isotope/backend/cuda/launch.hpp>
#include <isotope/fatbins/reference_cross_entropy.hpp>
#include <isotope/op/cross_entropy.hpp>
#include <isotope/op/cross_entropy_part.hpp>

#include "cross_entropy.h"

namespace isotope::cuda {

template <class P> struct kernel<op::cross_entropy, P, kernels::reference> {
  /// Returns the bytes for the losses of the rows.
  static constexpr std::int64_t scratch(const step_shapes& s) { return 8 * s.in[1].count(); }
  static void record(const launch& l, recording& r) {
    const view &logits = l.in[0], &targets = l.in[1], &loss = l.out[0], &tops = l.out[1], &sums = l.out[2];
    gpu::cross_entropy_arguments g{};
    g.logits = logits.at;
    g.targets = targets.at;
    g.tops = tops.at;
    g.sums = sums.at;
    g.losses = l.scratch;
    g.loss = loss.at;
    g.rows = targets.dims.count();
    g.N = logits.dims[-1];
    g.V = l.constants<op::cross_entropy>().classes;
    g.type = std::int32_t(logits.type);
    g.loss_type = std::int32_t(loss.type);
    const range losses(l.scratch, 8 * g.rows);
    if (g.rows > 0)
      r.add(fatbins::reference_cross_entropy, "reference_cross_entropy", g, per_item(g.rows), {logits, targets}, {tops, sums, losses});
    r.add(fatbins::reference_cross_entropy, "reference_cross_entropy_mean", g, per_block(1, 256), {targets, losses}, {loss});
  }
};

namespace reference {

/// The gradient of rows of V classes, of which column 0 is class `first` of `all`.
inline void record_cross_entropy_grad(const launch& l, recording& r, std::int64_t V, std::int64_t all, std::int64_t first) {
  const view &logits = l.in[0], &targets = l.in[1], &tops = l.in[2], &sums = l.in[3], &dloss = l.in[4], &dx = l.out[0];
  gpu::cross_entropy_grad_arguments g{};
  g.logits = logits.at;
  g.targets = targets.at;
  g.tops = tops.at;
  g.sums = sums.at;
  g.dloss = dloss.at;
  g.counted = l.scratch;
  g.dx = dx.at;
  g.rows = targets.dims.count();
  g.N = logits.dims[-1];
  g.V = V;
  g.all = all;
  g.first = first;
  g.type = std::int32_t(logits.type);
  g.dx_type = std::int32_t(dx.type);
  g.dloss_type = std::int32_t(dloss.type);
  if (g.rows * g.N == 0) return;
  const range counted(l.scratch, 8);
  const view& whole = l.in[l.in.size() > 5 ? 5 : 1];
  auto count = g;
  count.targets = whole.at;
  count.rows = whole.dims.count();
  r.add(fatbins::reference_cross_entropy, "reference_cross_entropy_counted", count, per_block(1, 256), {whole}, {counted});
  r.add(fatbins::reference_cross_entropy, "reference_cross_entropy_grad", g, per_item(g.rows * g.N),
        {logits, targets, tops, sums, dloss, counted}, {dx});
}

}  // namespace reference

template <class P> struct kernel<op::cross_entropy_grad, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;
  /// Returns the bytes for the number of rows that count.
  static constexpr std::int64_t scratch(const step_shapes&) { return 8; }
  static void record(const launch& l, recording& r) {
    const std::int64_t V = l.constants<op::cross_entropy>().classes;
    reference::record_cross_entropy_grad(l, r, V, V, 0);
  }
};
template <class P> struct kernel<op::cross_entropy_part_grad, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;
  static constexpr std::int64_t scratch(const step_shapes&) { return 8; }
  static void record(const launch& l, recording& r) {
    const auto c = l.constants<op::cross_entropy_part_grad>();
    reference::record_cross_entropy_grad(l, r, c.classes, c.all, c.first);
  }
};

}  // namespace isotope::cuda
