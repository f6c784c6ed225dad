#pragma once
#include "cache_append.hpp"

namespace isotope {
namespace op {
/// Operands: history (N, T) i32, recent (K, N) i32 and position (N) i32, which are updated in place, logits (N, V), draw (N) i32, sampling (N, 4) in
/// accumulation format, f32, key (N, 4) i32.
struct sample {
  /// Columns of `sampling`, and of `key`.
  enum number_column : std::uint8_t { temperature, top_p, min_p, repetition_penalty };
  enum key_column : std::uint8_t { seed_low, seed_high, top_k, offset };
  static constexpr std::int64_t numbers = 4, keys = 4;  // columns of `sampling`, and of `key`
  static constexpr std::uint32_t stream = 0xFFFFFFF0u;  // of Philox: far from the streams of a plan's ops, which count up from 0

  static constexpr std::string_view name = "sample";
  static constexpr std::uint8_t inout = 7;
  static constexpr operand_layout layout = operand_layout::rows;
  static constexpr std::int64_t flops(const step_shapes&) { return 0; }
  static constexpr void infer(shape_rule& r) {
    const shape &history = r.dims(0), &recent = r.dims(1), &position = r.dims(2), &logits = r.dims(3);
    if (!r.require(logits.rank == 2 && is_floating(r.type(3)) && logits[1] > 0, "logits must be [N,V], V at least 1")) return;
    const dim rows = logits.axis(0);
    if (!r.require(!logits.has_scalar() && !history.has_scalar() && !recent.has_scalar(),
                   "rows of logits and states need constant sizes") ||
        !r.require(history.rank == 2 && history.axis(0) == rows, "the history must be [N,T], for N rows of logits") ||
        !r.require(recent.rank == 2 && recent[0] > 0 && recent.axis(1) == rows, "recent tokens must be [K,N], for N rows of logits") ||
        !r.require(position == shape{rows} && r.dims(4) == position, "positions and rows to draw for must be [N]") ||
        !r.require(r.dims(5) == shape{rows, numbers} && r.dims(6) == shape{rows, keys}, "sampling and key must be [N,4]") ||
        !r.require(r.type(0) == dtype::i32 && r.type(1) == dtype::i32 && r.type(2) == dtype::i32 && r.type(4) == dtype::i32 &&
                       r.type(6) == dtype::i32,
                   "history, recent tokens, positions, draw and key must be i32") ||
        !r.require(r.type(5) == r.accum(), "sampling must have the format in which the program adds, f32"))
      return;
    r.yield(history, dtype::i32);
    r.yield(recent, dtype::i32);
    r.yield(position, dtype::i32);
  }
};
}  // namespace op

/// What `sample` updates: states of N sequences.
template <Machine M> struct sample_states {
  tensor<M> history;   // (N, T) i32, the tokens of each sequence
  tensor<M> recent;    // (K, N) i32, the last K drawn, the newest first: row 0 is what the model reads next
  tensor<M> position;  // (N) i32, of the newest token
};

/// Draws the next token of each sequence from its logits, and appends it to the sequence. With p = position[n], a row n with draw[n] >= 0 and 0 <= p < T
/// becomes position[n] = p + 1, history[n, p + 1] = token where p + 1 < T, and recent[:, n] = {token, recent[0, n], ...}. Other rows stay as they are.
///
/// The token of a row is chosen from x = logits[n] in this order, which is that of the Hugging Face library:
///   1. Repetition penalty r > 0: x[t] = x[t] < 0 ? r x[t] : x[t] / r, once for every token t in history[n, 0..p].
///   2. Temperature: if it is 0 (not positive), the largest x is taken, of equal ones the lowest id.
///   3. top_k from 1 to V - 1: only the top_k largest x. Equal ones rank by id, the lowest first. Otherwise all.
///   4. top_p < 1: of these only the fewest largest, at least one, whose weights w = exp((x - max x) / temperature) reach top_p times their sum.
///   5. min_p > 0: of these only those with w >= min(min_p, 1).
///   6. Of what is left, the largest (x - max x) / temperature - log e, of equal ones the lowest id, where e = -log(1 - (word + 1/2) 2^-32) and word is word
///      t % 4 of Philox 4x32-10(key = seed, counter = (t / 4, 0, p + 1 + offset, stream)): the Gumbel maximum, which draws t in proportion to its weight.
/// So the token depends on the logits, the history, the row's numbers and the place in its text, not on n or other rows. NaN and -inf are never drawn; if
/// there is nothing else, the token is 0.
///
/// @param s         states: what scope.state, assign or an update of them gave
/// @param logits    (N, V)
/// @param draw      (N) i32  negative: the row is idle
/// @param sampling  (N, 4) f32: temperature, top_p, min_p, repetition penalty; 1, 1, 0, 1 draws from the whole distribution
/// @param key       (N, 4) i32: the low and the high word of the seed, top_k, and an offset that is added to the position of the counter
/// @return          the states after this, which later ops have to read; not differentiable
/// @error           operands that are no states; shapes or formats that do not fit
/// Source: Fan et al. 2018, arXiv:1805.04833 (top-k); Holtzman et al. 2020, arXiv:1904.09751 (top-p); Keskar et al. 2019, arXiv:1909.05858 (repetition
/// penalty); Minh et al. 2024, arXiv:2407.01082 (min-p); Gumbel 1954 as in Maddison et al. 2014, arXiv:1411.0030.
template <HoldsState M>
constexpr sample_states<M> sample(sample_states<M> s, tensor<M> logits, tensor<M> draw, tensor<M> sampling, tensor<M> key,
                                  place at = place::current()) {
  for (const tensor<M>& x : {s.history, s.recent, s.position})
    if (!x.machine->keeps(x.id, info<op::sample>, at)) return {};
  const applied y = apply_op<op::sample>(
      logits.machine, {s.history.id, s.recent.id, s.position.id, logits.id, draw.id, sampling.id, key.id}, attributes{}, at);
  const auto of = [&](std::size_t k) { return tensor<M>{logits.machine, y.out[k]}; };
  return {of(0), of(1), of(2)};
}
}  // namespace isotope
