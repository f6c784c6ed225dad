#pragma once
#include "../core/state.hpp"

#include <utility>

namespace isotope {
namespace op {
/// The sizes of a cache of keys or values (B, G, T, D): slots, key-value heads, positions, elements of a head.
struct cache_sizes {
  std::int64_t B, G, T, D;
  constexpr explicit cache_sizes(const shape& cache) : B(cache[0]), G(cache[1]), T(cache[2]), D(cache[3]) {}
  /// Whether a row with these numbers has a place in the cache. The others are idle.
  constexpr bool has(std::int64_t sequence, std::int64_t position) const {
    return sequence >= 0 && sequence < B && position >= 0 && position < T;
  }
  /// What is wrong with the caches and the places of N rows, operands `caches` and `places` of an op and those after them; reports it.
  static constexpr bool check(shape_rule& r, int caches, int places, const dim& rows) {
    const shape &keys = r.dims(caches), &values = r.dims(caches + 1), &sequence = r.dims(places), &position = r.dims(places + 1);
    return r.require(keys.rank == 4 && values == keys, "caches must both be [slots,key-value heads,positions,head size]") &&
           r.require(!keys.has_scalar(), "a cache needs constant sizes") &&
           r.require(r.type(caches) == r.type(caches + 1) && is_floating(r.type(caches)), "caches must have one floating-point format") &&
           r.require(sequence == shape{rows} && position == sequence, "sequences and positions must be [N], for N rows") &&
           r.require(r.type(places) == dtype::i32 && r.type(places + 1) == dtype::i32, "sequences and positions must be i32");
  }
};
/// Operands: caches of keys and of values (B, G, T, D), which are updated in place, keys and values (N, G D), sequence (N) i32, position (N) i32.
struct cache_append {
  static constexpr std::string_view name = "cache_append";
  static constexpr std::uint8_t inout = 3;
  static constexpr operand_layout layout = operand_layout::rows;
  static constexpr std::int64_t flops(const step_shapes&) { return 0; }
  static constexpr void infer(shape_rule& r) {
    const shape &cache = r.dims(0), &rows = r.dims(2);
    if (!r.require(rows.rank == 2, "keys and values must be [N,key-value heads x head size]") ||
        !cache_sizes::check(r, 0, 4, rows.axis(0)) ||
        !r.require(rows[1] == cache[1] * cache[3] && !rows.late(1) && r.dims(3) == rows,
                   "keys and values must be [N,key-value heads x head size]") ||
        !r.require(r.type(2) == r.type(0) && r.type(3) == r.type(0), "keys and values must have the format of the caches"))
      return;
    r.yield(cache, r.type(0));
    r.yield(cache, r.type(1));
  }
};
}  // namespace op

/// keys[sequence[n], g, position[n], d] = k[n, g D + d], and the same of values and v, for rows n in ascending order: of rows with one place the last one stays.
/// Rows whose sequence is not a slot or whose position is not in the cache are idle: they change nothing. A cache is an array of rows, as attention_cached
/// reads them, so that what one token adds is contiguous, and a range of positions can be copied as a whole.
///
/// @param keys, values  (B, G, T, D)  states: what scope.state, assign or cache_append gave
/// @param k, v          (N, G D)      of packed tokens, which may belong to any sequences
/// @param sequence      (N) i32       the slot of each token
/// @param position      (N) i32       its position in its sequence
/// @return              the caches after this, which later ops have to read; not differentiable
/// @error               a cache that is no state, or a view of one; shapes or formats that differ
template <HoldsState M>
constexpr std::pair<tensor<M>, tensor<M>> cache_append(tensor<M> keys, tensor<M> values, tensor<M> k, tensor<M> v, tensor<M> sequence,
                                                       tensor<M> position, place at = place::current()) {
  if (!keys.machine->keeps(keys.id, info<op::cache_append>, at) || !keys.machine->keeps(values.id, info<op::cache_append>, at)) return {};
  const applied y = apply_op<op::cache_append>(keys.machine, {keys.id, values.id, k.id, v.id, sequence.id, position.id}, attributes{}, at);
  return {tensor<M>{keys.machine, y.out[0]}, tensor<M>{keys.machine, y.out[1]}};
}
}  // namespace isotope
