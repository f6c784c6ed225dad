#pragma once
/// Mean negative log-likelihood of the targets and its gradient; the gradient recomputes probabilities from the stored maxima and sums. Rows are
/// counted in f32: exact up to 2^24 rows, rounded beyond.
#include <isotope/op/cross_entropy.hpp>
#include <isotope/shaders/reference_cross_entropy.hpp>
#include <isotope/shaders/reference_cross_entropy_counted.hpp>
#include <isotope/shaders/reference_cross_entropy_grad.hpp>
#include <isotope/shaders/reference_cross_entropy_mean.hpp>

#include "total.hpp"

namespace isotope::vulkan {
namespace reference {

/// f32 (of, rows) in scratch, followed by its sums over the rows.
struct row_numbers {
  std::int64_t of, rows;
  constexpr std::int64_t bytes() const { return 4 * of * (rows + 1) + 8 + total_bytes(of, rows); }
  view at(std::uint64_t scratch) const {
    const shape dims{of, rows};
    return {scratch, 4 * of * rows, dims, dense_strides(dims), dtype::f32};
  }
  view totals(std::uint64_t scratch) const {
    const shape dims{of};
    return {scratch + std::uint64_t(4 * of * rows), 4 * of, dims, dense_strides(dims), dtype::f32};
  }
  /// Records the sums.
  void add_up(const launch& l, recording& r) const {
    const auto pairs_at = (l.scratch + std::uint64_t(4 * of * (rows + 1)) + 7) / 8 * 8;
    const view x = at(l.scratch);
    total(l, r, x, axes_apart(x, 2), pairs_at, {totals(l.scratch)});
  }
};

}  // namespace reference

template <class P> struct kernel<op::cross_entropy, P, kernels::reference> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return reference::row_numbers{2, s.in[1].count()}.bytes(); }
  static void record(const launch& l, recording& r) {
    using reference::word;
    const view &logits = l.in[0], &targets = l.in[1], &loss = l.out[0], &tops = l.out[1], &sums = l.out[2];
    const auto rows = targets.dims.count(), N = logits.dims[-1], V = l.constants<op::cross_entropy>().classes;
    const reference::row_numbers losses{2, rows};
    const view each = losses.at(l.scratch), totals = losses.totals(l.scratch);
    if (rows > 0) {
      const struct {
        std::uint64_t logits, targets, tops, sums, losses;
        std::uint32_t rows, N, V;
      } push{logits.at, targets.at, tops.at, sums.at, each.at, word(rows), word(N), word(V)};
      r.add(shaders::reference_cross_entropy, reference::plain(l).add(logits.type), push, reference::per_item(rows), {logits, targets},
            {tops, sums, each});
    }
    losses.add_up(l, r);
    const struct {
      std::uint64_t totals, loss;
    } push{totals.at, loss.at};
    r.add(shaders::reference_cross_entropy_mean, reference::plain(l), push, {}, {totals}, {loss});
  }
};

template <class P> struct kernel<op::cross_entropy_grad, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return reference::row_numbers{1, s.in[s.in.size() > 5 ? 5 : 1].count()}.bytes();
  }
  static void record(const launch& l, recording& r) {
    using reference::word;
    const view &logits = l.in[0], &targets = l.in[1], &tops = l.in[2], &sums = l.in[3], &dloss = l.in[4], &dx = l.out[0];
    const auto rows = targets.dims.count(), N = logits.dims[-1], V = l.constants<op::cross_entropy>().classes;
    if (rows * N == 0) return;
    const view& all = l.in[l.in.size() > 5 ? 5 : 1];
    const reference::row_numbers flags{1, all.dims.count()};
    const view each = flags.at(l.scratch), counted = flags.totals(l.scratch);
    const struct {
      std::uint64_t targets, counted;
      std::uint32_t rows, V;
    } count{all.at, each.at, word(all.dims.count()), word(V)};
    r.add(shaders::reference_cross_entropy_counted, reference::plain(l), count, reference::per_item(all.dims.count()), {all}, {each});
    flags.add_up(l, r);
    const struct {
      std::uint64_t logits, targets, tops, sums, dloss, counted, dx;
      std::uint32_t rows, N, V;
    } push{logits.at, targets.at, tops.at, sums.at, dloss.at, counted.at, dx.at, word(rows), word(N), word(V)};
    r.add(shaders::reference_cross_entropy_grad, reference::plain(l).add(logits.type).add(dx.type), push, reference::per_item(rows * N),
          {logits, targets, tops, sums, dloss, counted}, {dx});
  }
};

}  // namespace isotope::vulkan
