#pragma once
/// Which keys a query attends to, and which queries attend to a key. Tiled kernels use this to skip tiles.
#include <cstdint>

#include "../core/op_info.hpp"
#include "../core/target.hpp"

namespace isotope::op {

/// The indices first to end - 1.
struct index_range {
  std::int64_t first = 0, end = 0;
  friend constexpr bool operator==(const index_range&, const index_range&) = default;
};

/// The index nearest to i from `first` to `last`. Every program includes this file, whose compile time std::clamp's header would add to.
constexpr std::int64_t clamp_index(std::int64_t i, std::int64_t first, std::int64_t last) {
  return i < first ? first : i > last ? last : i;
}

struct attention_constants {
  std::int64_t heads = 0, kv_heads = 0;  // H query heads; G key-value heads
  bool causal = false;                   // a query does not attend to keys after its own
  bool packed = false;                   // queries, keys and values are one operand
  bool masked = false;                   // the last operand is a mask, which is added to the scores
  std::int64_t window = 0;               // a query attends to this many keys up to its own; 0: no window
  double scale = 0;                      // of the scores; 0: 1 / sqrt(head size), which the shape rule fills in
  double dropout = 0;                    // dropout rate of attention probabilities, in [0, 1)
  std::int64_t all_heads = 0;            // of a batch on all devices, of which `heads` are here; 0: all are here
  std::int64_t first_head = 0;           // the number of the first head here among those of all batches on all devices
  bool batch_invariant = false;  // kernels add up a sequence in the same order however many there are: plan_inference's batch_invariant
  static constexpr attention_constants of(const attributes& a) {
    return {a.i[0], a.i[1], (a.i[2] & 1) != 0, a.i[3] != 0, a.i[4] != 0, a.i[5], a.f[0], a.f[1], a.i[6], a.i[7], (a.i[2] & 2) != 0};
  }
  constexpr operator attributes() const {
    return {.i = {heads, kv_heads, causal + 2 * batch_invariant, packed, masked, window, all_heads, first_head}, .f = {scale, dropout}};
  }
  /// The number of head h of batch b among those of all devices, by which dropout draws.
  constexpr std::int64_t head_number(std::int64_t b, std::int64_t h) const {
    return first_head + b * (all_heads == 0 ? heads : all_heads) + h;
  }
};

/// The sizes of an attention step: batches, queries, keys, heads of queries and of keys and values, and elements of a head.
struct attention_sizes {
  std::int64_t B, S, T, H, G, D;

  /// k: the shape of the keys, or of q again where they are packed.
  constexpr attention_sizes(const attention_constants& c, const shape& q, const shape& k)
      : B(q[0]), S(q[1]), T(k[1]), H(c.heads), G(c.kv_heads), D(H == 0 ? 0 : q[2] / (c.packed ? H + 2 * G : H)) {}
  static constexpr attention_sizes of(const step_shapes& s) {
    const auto c = attention_constants::of(*s.attr);
    return {c, s.in[0], s.in[c.packed ? 0 : 1]};
  }
};

/// Queries are aligned with the last keys: query s has the position of key s + T - S. If causal, it attends to that key and those before it; with a window w,
/// to the last w of these. Causal attention has at most as many queries as keys.
struct attention_range {
  std::int64_t S, T;
  bool causal;
  std::int64_t window;  // 0: none

  /// A window of at least T keys counts as no window.
  constexpr attention_range(const attention_constants& c, std::int64_t queries, std::int64_t keys)
      : S(queries), T(keys), causal(c.causal), window(c.window < keys ? c.window : 0) {}

  /// The keys that query s attends to.
  constexpr index_range keys(std::int64_t s) const {
    const std::int64_t own = s + T - S;
    return {window == 0 ? 0 : clamp_index(own + 1 - window, 0, T), causal ? own + 1 : T};
  }
  /// The queries that attend to key t.
  constexpr index_range queries(std::int64_t t) const {
    const std::int64_t own = t + S - T, first = causal ? clamp_index(own, 0, S) : 0;
    return {first, window == 0 ? S : clamp_index(own + window, first, S)};
  }
  /// The keys that any query from `first` to end - 1 attends to, where the first key is rounded down to a multiple of `tile`. Needs first < end.
  constexpr index_range keys_in_tiles(std::int64_t first, std::int64_t end, std::int64_t tile) const {
    return {keys(first).first / tile * tile, clamp_index(keys(end - 1).end, 0, T)};
  }
  /// The number of pairs of a query and a key that it attends to.
  constexpr std::int64_t pairs() const {
    if (!causal) return S * T;
    const auto triangle = [](std::int64_t n) { return n * (n + 1) / 2; };
    if (window == 0) return triangle(T) - triangle(T - S);
    const std::int64_t less = clamp_index(window - (T - S + 1), 0, S);  // queries that have fewer than `window` keys
    return triangle(T - S + less) - triangle(T - S) + (S - less) * window;
  }
};

}  // namespace isotope::op
