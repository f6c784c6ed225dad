#pragma once
/// Mean negative log-likelihood of the targets and its gradient; the gradient recomputes probabilities from the stored maxima and sums. Bound by
/// bytes: one read of the logits forward, a read and a write backward.
#include <isotope/kernels/vulkan/reference/cross_entropy.hpp>
#include <isotope/op/cross_entropy.hpp>
#include <isotope/shaders/cross_entropy.hpp>
#include <isotope/shaders/cross_entropy_grad.hpp>
#include <isotope/shaders/cross_entropy_rows.hpp>

#include <isotope/kernels/vulkan/rows/rows.hpp>

namespace isotope::vulkan {
namespace portable {

/// Records one workgroup over the targets: y = mean of x over the rows that count or, for the gradient, x divided by their number.
inline void record_counted_rows(const launch& l, recording& r, const view& targets, std::int64_t V, const view& x, const view& y,
                                bool gradient) {
  const struct {
    std::uint64_t targets, x, y;
    std::uint32_t rows, V;
  } push{targets.at, x.at, y.at, word(targets.dims.count()), word(V)};
  const bool wide = targets.dims.count() % 4 == 0 && all_aligned(targets, x);
  r.add(shaders::cross_entropy_rows, of_rows(l, team::alone(*l.device), wide).add(gradient), push, groups{}, {targets, x}, {y}).subgroup =
      l.device->subgroup;
}

}  // namespace portable

template <class P> struct kernel<op::cross_entropy, P, kernels::portable> {
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return std::max(4 * s.in[1].count(), portable::scratch_below<op::cross_entropy, P>(s));
  }
  static void record(const launch& l, recording& r) {
    using portable::word;
    const view &logits = l.in[0], &targets = l.in[1], &loss = l.out[0], &tops = l.out[1], &sums = l.out[2];
    const std::int64_t N = logits.dims.cols(), V = l.constants<op::cross_entropy>().classes, rows = targets.dims.count();
    if (!portable::aligned(logits))
      return portable::fall_through<op::cross_entropy, P>(l, r, "cross_entropy: the logits are no whole vectors");
    view losses;
    losses.at = l.scratch;
    losses.bytes = 4 * rows;
    if (rows > 0) {
      const struct {
        std::uint64_t logits, targets, tops, sums, losses;
        std::uint32_t rows, N, V;
      } push{logits.at, targets.at, tops.at, sums.at, losses.at, word(rows), word(N), word(V)};
      const bool wide = N % 4 == 0;
      const auto t = portable::team::streaming(*l.device, portable::blocks_of_row(V, wide), 8);
      r.add(shaders::cross_entropy, portable::of_rows(l, t, wide).add(logits.type), push, t.take(rows), {logits, targets},
            {tops, sums, losses})
          .subgroup = l.device->subgroup;
    }
    portable::record_counted_rows(l, r, targets, V, losses, loss, false);
  }
};

template <class P> struct kernel<op::cross_entropy_grad, P, kernels::portable> {
  static constexpr std::uint32_t inplace = 1;
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return std::max<std::int64_t>(4, portable::scratch_below<op::cross_entropy_grad, P>(s));
  }
  static void record(const launch& l, recording& r) {
    using portable::word;
    const view &logits = l.in[0], &targets = l.in[1], &tops = l.in[2], &sums = l.in[3], &dloss = l.in[4], &dlogits = l.out[0];
    const std::int64_t N = logits.dims.cols(), V = l.constants<op::cross_entropy>().classes, rows = targets.dims.count();
    if (rows * N == 0) return;
    if (!portable::all_aligned(logits, dlogits))
      return portable::fall_through<op::cross_entropy_grad, P>(l, r, "cross_entropy_grad: the logits are no whole vectors");
    view k;
    k.at = l.scratch;
    k.bytes = 4;
    portable::record_counted_rows(l, r, l.in[l.in.size() > 5 ? 5 : 1], V, dloss, k, true);
    const bool wide = N % 4 == 0;
    auto t = portable::team::streaming(*l.device, portable::blocks_of_row(N, wide), 0);
    t.hold = 4;
    const std::int64_t pieces = portable::divide_up(portable::blocks_of_row(N, wide), t.hold * t.workgroup);
    const struct {
      std::uint64_t logits, targets, tops, sums, k, dlogits;
      std::uint32_t rows, N, V, pieces;
    } push{logits.at, targets.at, tops.at, sums.at, k.at, dlogits.at, word(rows), word(N), word(V), word(pieces)};
    r.add(shaders::cross_entropy_grad, portable::of_rows(l, t, wide).add(logits.type), push, cover(rows * pieces, 1),
          {logits, targets, tops, sums, k}, {dlogits})
        .subgroup = l.device->subgroup;
  }
};

}  // namespace isotope::vulkan
