#pragma once
#include "../core/square_root.hpp"
#include "cache_append.hpp"

namespace isotope {
namespace op {
/// Operands: q (N, H D), caches of keys and of values (B, G, T, D), sequence (N) i32, position (N) i32.
struct attention_cached {
  struct constants {
    std::int64_t heads = 0;        // H
    std::int64_t window = 0;       // a query attends to this many keys up to its own; 0: no window
    double scale = 0;              // of the scores; 0: 1 / sqrt(head size), which the shape rule fills in
    bool batch_invariant = false;  // kernels add up a query in the same order however many there are: plan_inference's batch_invariant
    static constexpr constants of(const attributes& a) { return {a.i[0], a.i[1], a.f[0], a.i[2] != 0}; }
    constexpr operator attributes() const { return {.i = {heads, window, batch_invariant}, .f = {scale}}; }
    /// The first key that the query at this position attends to.
    constexpr std::int64_t first(std::int64_t position) const { return window == 0 || position < window ? 0 : position + 1 - window; }
  };
  static constexpr std::string_view name = "attention_cached";
  static constexpr operand_layout layout = operand_layout::rows;
  static constexpr void set_batch_invariant(attributes& a) {
    auto c = constants::of(a);
    c.batch_invariant = true;
    a = c;
  }
  /// q k^T and p v, if every query is at the last position.
  static constexpr std::int64_t flops(const step_shapes& s) {
    const auto c = s.constants<attention_cached>();
    const std::int64_t T = s.in[1][2];
    return 4 * s.in[0].count() * (c.window == 0 || c.window > T ? T : c.window);
  }
  static constexpr void infer(shape_rule& r) {
    auto c = constants::of(r.attr);
    const shape &q = r.dims(0), &cache = r.dims(1);
    if (!r.require(q.rank == 2, "queries must be [N,heads x head size]") || !cache_sizes::check(r, 1, 3, q.axis(0))) return;
    if (!r.require(c.heads > 0 && c.heads <= max_elements && cache[1] > 0 && c.heads % cache[1] == 0,
                   "heads must be a positive multiple of key-value heads"))
      return;
    if (!r.require(cache[3] > 0 && q[1] == c.heads * cache[3] && !q.late(1), "queries must be [N,heads x head size]") ||
        !r.require(c.window >= 0, "the window is negative"))
      return;
    if (c.scale == 0) c.scale = 1.0 / square_root(double(cache[3]));
    r.attr = c;
    r.yield(q, r.type(0));
  }
};
}  // namespace op

struct attention_cached_options {
  int window = 0;    // a query attends only to its own key and the window - 1 before it; 0: no window
  double scale = 0;  // 0: 1 / sqrt(head size)
};

/// y[n] = softmax(scale q[n] k^T) v for each head, with the keys and values of positions 0 to position[n] in slot sequence[n] of the caches. It is what
/// causal attention over the whole sequence gives in this row.
///
/// @param q             (N, H D)      of packed tokens, which may belong to any sequences
/// @param keys, values  (B, G, T, D)  to which cache_append has added the tokens' own; each serves H / G query heads
/// @param sequence      (N) i32       the slot of each token
/// @param position      (N) i32       its position in its sequence
/// @param heads         H
/// @return              (N, H D)      0 in idle rows, whose sequence is not a slot or whose position is not in the cache; not differentiable
/// @error               shapes that do not fit, a negative window
/// Source: as attention; Pope et al. 2022, arXiv:2211.05102, section 3.3 (cached keys and values).
template <Machine M>
constexpr tensor<M> attention_cached(tensor<M> q, tensor<M> keys, tensor<M> values, tensor<M> sequence, tensor<M> position, int heads,
                                     attention_cached_options o = {}, place at = place::current()) {
  const op::attention_cached::constants c{.heads = heads, .window = o.window, .scale = o.scale};
  return apply<op::attention_cached>(at, c, q, keys, values, sequence, position);
}
}  // namespace isotope
