#pragma once
#include "../core/tape.hpp"

namespace isotope {
namespace op {
/// Operands logits, targets, top, sum, dloss, and optionally the targets of all rows, of which the others are a part; output
/// dlogits = dloss (e^(logits - top) / sum - onehot(target)) / counted rows, of all rows. It is 0 in rows that do not count and in columns that are not
/// classes.
struct cross_entropy_grad {
  struct constants {
    std::int64_t classes = 0;  // V <= N: only the first V columns are classes, the others are not read; 0: the shape rule fills in N
    std::int64_t all = 0;      // classes that are divided between devices, `classes` being those of this one; 0: they are not divided
    static constexpr constants of(const attributes& a) { return {.classes = a.i[0], .all = a.i[1]}; }
    constexpr operator attributes() const { return {.i = {classes, all}}; }
    /// The classes of one device: the last has fewer of them.
    static constexpr void localise(attributes& a, const mesh_position& at) {
      auto c = of(a);
      if (c.all > 0 && c.classes * (at.tensor + 1) > c.all) c.classes = c.all - c.classes * at.tensor;
      a = c;
    }
  };
  static constexpr std::string_view name = "cross_entropy_grad";
  using gradient_of = struct cross_entropy;
  static constexpr void infer(shape_rule& r) {
    if (r.inputs() > 5 && !r.require(r.type(5) == dtype::i32, "the targets of all rows must be i32")) return;
    if (count_classes(r)) r.yield(r.dims(0), r.type(0));
  }
  static constexpr bool count_classes(shape_rule& r) {
    if (!r.require(!r.dims(0).late(-1), "the number of classes is a late size: give a constant one")) return false;
    const std::int64_t N = r.dims(0)[-1];
    auto c = constants::of(r.attr);
    if (c.classes == 0) c.classes = N;
    r.attr = c;
    const auto classes = c.classes;
    message m;
    if (classes < 0 || classes > N) r.fail(m << classes << " classes in rows of " << N << " logits");
    return m.empty();
  }
  static constexpr void shard(sharding& s);  // op/cross_entropy_part.hpp
};
/// Operands logits (..., N), targets (...) i32; outputs in accumulation format: loss (), and of each row its largest logit, top (...), and
/// sum (...) = sum_c e^(logits[c] - top). They are separate outputs because rounding top + ln sum would lose small differences of large logits.
/// Both are NaN if a logit is NaN or infinity, or all are -infinity.
struct cross_entropy {
  using constants = cross_entropy_grad::constants;
  static constexpr std::string_view name = "cross_entropy";
  static constexpr bool counts_columns = true;
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
  static constexpr void shard(sharding& s);  // op/cross_entropy_part.hpp
  static constexpr void localise(attributes& a, const mesh_position& at) { constants::localise(a, at); }
  static constexpr void gradient(pullback& g) {
    g.give(0, apply<cross_entropy_grad>(place::current(), g.attr, g.x(0), g.x(1), g.y(1), g.y(2), g.dy()));
  }
};
}  // namespace op

/// loss = avg over rows of (logsumexp(logits[row]) - logits[row, target[row]]), in nats; probabilities are never stored.
///
/// @param logits   (..., N)
/// @param targets  (...)  i32; a row whose target is outside [0, V), e.g. -1, does not count for loss and gradient
/// @param classes  V: only the first V columns are classes, the others are padding and may hold anything; 0: all columns
/// @return         ()     accumulation format; 0 if no row counts
/// @error          targets of another shape or format; more classes than logits
template <Machine M>
constexpr tensor<M> cross_entropy(tensor<M> logits, tensor<M> targets, std::int64_t classes = 0, place at = place::current()) {
  return apply<op::cross_entropy>(at, op::cross_entropy::constants{.classes = classes}, logits, targets);
}
}  // namespace isotope

#include "cross_entropy_part.hpp"
