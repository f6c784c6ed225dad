#pragma once
#include "../core/tape.hpp"

namespace isotope {
namespace op {
/// Operands logits, targets, top, sum, dloss; output dlogits = dloss (e^(logits - top) / sum - onehot(target)) / counted rows, 0 in rows that do
/// not count and in columns that are no classes.
struct cross_entropy_grad {
  struct constants {
    std::int64_t classes = 0;  // V <= N: the first columns, and nothing reads the others; 0: all N, which the shape rule fills in
    static constexpr constants of(const attributes& a) { return {.classes = a.i[0]}; }
    constexpr operator attributes() const { return {.i = {classes}}; }
  };
  static constexpr std::string_view name = "cross_entropy_grad";
  static constexpr void infer(shape_rule& r) {
    if (count_classes(r)) r.yield(r.dims(0), r.type(0));
  }
  static constexpr bool count_classes(shape_rule& r) {
    if (!r.require(!r.dims(0).late(-1), "the number of classes is a late size: give a constant one")) return false;
    const std::int64_t N = r.dims(0)[-1];
    auto [classes] = constants::of(r.attr);
    if (classes == 0) classes = N;
    r.attr = constants{classes};
    message m;
    if (classes < 0 || classes > N) r.fail(m << classes << " classes in rows of " << N << " logits");
    return m.empty();
  }
};
/// Operands logits (..., N), targets (...) i32; outputs in accumulation format: loss (), and of each row its largest logit, top (...), and
/// sum (...) = sum_c e^(logits[c] - top). The two stay apart: top + ln sum, rounded, would lose what small differences of large logits say.
/// Both are NaN where a logit is NaN or infinity, or all are -infinity.
struct cross_entropy {
  using constants = cross_entropy_grad::constants;
  static constexpr std::string_view name = "cross_entropy";
  static constexpr void infer(shape_rule& r) {
    const shape& x = r.dims(0);
    shape rows;
    for (int i = 0; i + 1 < x.rank; ++i) rows.push(x.axis(i));
    if (!r.require(x.rank >= 1 && r.dims(1) == rows, "targets must have the shape of the logits without the last axis") ||
        !r.require(r.type(1) == dtype::i32, "targets must be i32") || !cross_entropy_grad::count_classes(r))
      return;
    r.yield({}, r.accum());
    r.yield(rows, r.accum());
    r.yield(rows, r.accum());
  }
  static constexpr void gradient(pullback& g) {
    g.give(0, apply<cross_entropy_grad>(place::current(), g.attr, g.x(0), g.x(1), g.y(1), g.y(2), g.dy()));
  }
};
}  // namespace op

/// loss = avg over rows of (logsumexp(logits[row]) - logits[row, target[row]]), in nats; probabilities are never stored.
///
/// @param logits   (..., N)
/// @param targets  (...)  i32; a target outside [0, V), e.g. -1, leaves its row out of loss and gradient
/// @param classes  V: the first columns of the logits; 0: all of them. The others pad rows to a length that kernels like, and may hold anything
/// @return         ()     accumulation format; 0 where no row counts
/// @error          targets of another shape or format; more classes than logits
template <Machine M>
constexpr tensor<M> cross_entropy(tensor<M> logits, tensor<M> targets, std::int64_t classes = 0, place at = place::current()) {
  return apply<op::cross_entropy>(at, op::cross_entropy::constants{.classes = classes}, logits, targets);
}
}  // namespace isotope
