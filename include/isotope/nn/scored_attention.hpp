#pragma once
/// Attention whose scores are tensors of their own: masks and biases of any shape, a soft cap, windows to both sides, values of another width than keys. It is made
/// of products and a softmax, so time and memory grow with S T; `attention` computes the usual kinds in O(S) memory. Include it beside nn.hpp.
#include <cstdint>
#include <limits>

#include "../core/square_root.hpp"
#include "../op/arrange.hpp"
#include "../op/cast.hpp"
#include "../op/dropout.hpp"
#include "../op/exp.hpp"
#include "../op/matmul.hpp"
#include "../op/maximum.hpp"
#include "../op/scale.hpp"
#include "../op/sign.hpp"
#include "../op/softmax.hpp"
#include "../op/tanh.hpp"

namespace isotope::nn {

/// Query s stands at position s + before, key t at position t.
struct scored_attention_options {
  bool causal = false;       // a query attends to the keys up to its own position
  std::int64_t before = -1;  // how many keys precede the first query; -1: T - S, so that the last query and the last key have one position
  std::int64_t left = -1;    // a query attends to so many keys before its position at most; -1: to all
  std::int64_t right = -1;   // and to so many behind it
  double scale = 0;          // 0: 1 / sqrt(D)
  double soft_cap = 0;       // scores become soft_cap tanh(score / soft_cap) before the mask is added; 0: they stay
  double dropout = 0;        // dropout rate of probabilities, in [0, 1)
};

namespace scored {
/// x of (B, G R, S, D) as (B, G, R S, D): the queries that share keys are rows of one product.
template <Machine M> constexpr tensor<M> shared_rows(tensor<M> x, std::int64_t groups, place at) {
  return reshape(x, {x.dims().axis(0), dim(groups), dim(x[1] / groups * x[2]), x.dims().axis(3)}, at);
}
/// -infinity for keys outside the range of a query, else 0: (S, T). Not valid if all keys are inside.
template <Machine M>
constexpr tensor<M> range_mask(M& m, std::int64_t S, std::int64_t T, dtype type, const scored_attention_options& o, place at) {
  const std::int64_t before = o.before < 0 ? T - S : o.before;
  tensor<M> mask;
  const auto zero = fill(m, {}, type, 0, at), never = fill(m, {}, type, -std::numeric_limits<double>::infinity(), at);
  const auto query = reshape(shift(iota(m, S, at), double(before), at), {S, 1}, at), key = reshape(iota(m, T, at), {1, T}, at);
  const auto exclude = [&](tensor<M> outside) {
    const auto more = where(outside, never, zero, at);
    mask = mask.valid() ? minimum(mask, more, at) : more;
  };
  const std::int64_t right = o.causal ? 0 : o.right;
  if (right >= 0) exclude(less(shift(query, double(right), at), key, at));
  if (o.left >= 0) exclude(less(key, shift(query, -double(o.left), at), at));
  return mask;
}
}  // namespace scored

/// y = dropout(softmax(cap(scale q k^T) + mask)) v for each head. A query that attends to no key gives zeros.
///
/// @param q     (B, H, S, D)
/// @param k     (B, G, T, D)  each key-value head serves H / G query heads
/// @param v     (B, G, T, E)
/// @param mask  none, or numbers to add, -infinity among them, or booleans, true where a query attends to a key; broadcasts to (B, H, S, T)
/// @return      (B, H, S, E)
/// @error       shapes that do not fit; late sizes of S or T where positions matter; dropout outside [0, 1)
/// Source: ONNX operators, Attention of opset 24; Gemma Team 2024, arXiv:2408.00118, section 2 (soft cap).
template <Machine M>
constexpr tensor<M> scored_attention(tensor<M> q, tensor<M> k, tensor<M> v, tensor<M> mask = {}, scored_attention_options o = {},
                                     place at = place::current()) {
  M& m = *q.machine;
  message why;
  if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4) {
    m.fail(why << "scored_attention: q, k and v must be [B,heads,length,width], they are " << q.dims() << ", " << k.dims() << " and "
               << v.dims(),
           at);
    return q;
  }
  if (k[1] <= 0 || q[1] % k[1] != 0 || q[3] != k[3] || k[1] != v[1] || k.dims().axis(2) != v.dims().axis(2)) {
    m.fail(why << "scored_attention: q " << q.dims() << ", k " << k.dims() << " and v " << v.dims()
               << " do not fit: heads must be a multiple of key-value heads, q and k have one width, k and v one length",
           at);
    return q;
  }
  const bool ranged = o.causal || o.left >= 0 || o.right >= 0;
  if (ranged && (q.dims().late(2) || k.dims().late(2))) {
    m.fail(why << "scored_attention: a range of keys needs constant lengths, q is " << q.dims() << " and k " << k.dims()
               << "; give a mask instead",
           at);
    return q;
  }
  const auto S = q[2], T = k[2];
  const double factor = o.scale == 0 ? 1 / square_root(double(q[3])) : o.scale;
  auto scores = reshape(matmul(scored::shared_rows(q, k[1], at), transpose(k, at), factor, at),
                        {q.dims().axis(0), q.dims().axis(1), q.dims().axis(2), k.dims().axis(2)}, at);
  if (o.soft_cap > 0) scores = scale(tanh(scale(scores, 1 / o.soft_cap, at), at), o.soft_cap, at);
  const auto never = fill(m, {}, scores.type(), -std::numeric_limits<double>::infinity(), at);
  bool masked = false;
  if (mask.valid()) {
    scores = mask.type() == dtype::boolean ? where(mask, scores, never, at) : add(scores, mask, at);
    masked = true;
  }
  if (ranged) {
    scores = add(scores, scored::range_mask(m, S, T, scores.type(), o, at), at);
    masked = true;
  }
  tensor<M> p;
  if (masked) {
    // A row of -infinity alone has no softmax: numbers take the place of -infinity, and probabilities of 0 that of theirs.
    const auto excluded = equal(scores, never, at);
    const auto least = fill(m, {}, scores.type(), -0x1p126, at), zero = fill(m, {}, scores.type(), 0, at);
    p = where(excluded, zero, softmax(where(excluded, least, scores, at), -1, at), at);
  } else {
    p = softmax(scores, -1, at);
  }
  if (o.dropout != 0) p = dropout(p, o.dropout, at);
  return reshape(matmul(scored::shared_rows(p, k[1], at), v, 1, at),
                 {q.dims().axis(0), q.dims().axis(1), q.dims().axis(2), v.dims().axis(3)}, at);
}

/// The biases of attention with linear biases: b[h, s, t] = -slope(h) |s + T - S - t|, with slope(h) = 2^(-8 (h + 1) / H) for a power of two of heads H; of
/// other numbers, the first N = 2^floor(log2 H) heads have the slopes of N heads, and the others every second slope of 2 N heads.
///
/// @return  (H, S, T) f32, a mask of scored_attention
/// Source: Press et al. 2022, arXiv:2108.12409, section 3.
template <Machine M> constexpr tensor<M> alibi(M& m, int heads, std::int64_t S, std::int64_t T, place at = place::current()) {
  std::int64_t whole = 1;
  while (2 * whole <= heads) whole *= 2;
  constexpr double ln2 = 0.69314718055994530942;
  const auto slopes = [&](std::int64_t count, double first, double step) {
    return exp(scale(shift(scale(iota(m, count, at), step, at), first, at), -8 * ln2 / double(whole), at), at);
  };
  const auto slope = heads > whole ? concat({slopes(whole, 1, 1), slopes(heads - whole, 0.5, 1)}, 0, at) : slopes(heads, 1, 1);
  const auto query = reshape(shift(iota(m, S, at), double(T - S), at), {S, 1}, at), key = reshape(iota(m, T, at), {1, T}, at);
  return mul(reshape(neg(slope, at), {heads, 1, 1}, at), abs(sub(query, key, at), at), at);
}

/// Learned biases by distance: b[h, s, t] = table[bucket(t - s - (T - S)), h]. Distances below half of the buckets of a direction have a bucket each, those beyond
/// share buckets whose widths grow with the logarithm, up to max_distance. Both directions have half of the buckets each; a causal model's queries see keys
/// before them alone, which have all buckets.
///
/// @param table  (buckets, H)
/// @return       (H, S, T) in the format of the table, a mask of scored_attention
/// @error        an odd number of buckets, fewer than 4, or a max_distance not beyond the buckets of one distance each
/// Source: Raffel et al. 2020, arXiv:1910.10683, section 2.1; huggingface/transformers, modeling_t5.py, T5Attention.
template <Machine M>
constexpr tensor<M> relative_bias(tensor<M> table, std::int64_t S, std::int64_t T, bool causal = false, std::int64_t max_distance = 128,
                                  place at = place::current()) {
  M& m = *table.machine;
  const std::int64_t buckets = table.rank() == 2 ? table[0] : 0, half = causal ? buckets : buckets / 2, single = half / 2;
  message why;
  if (buckets < 4 || buckets % 4 != 0 || max_distance <= single) {
    m.fail(why << "relative_bias: a table of " << table.dims() << " with distances up to " << max_distance
               << " does not do: (buckets,heads), buckets a multiple of 4, the largest distance above " << single,
           at);
    return table;
  }
  const auto query = reshape(shift(iota(m, S, at), double(T - S), at), {S, 1}, at), key = reshape(iota(m, T, at), {1, T}, at);
  const auto behind = sub(query, key, at);  // how far a key lies before the query
  const auto zero = fill(m, {}, dtype::f32, 0, at), one = fill(m, {}, dtype::f32, 1, at);
  const auto distance = causal ? maximum(behind, zero, at) : abs(behind, at);
  auto bucket = minimum(distance, fill(m, {}, dtype::f32, double(single), at), at);
  // Bucket single + j begins at the distance single (max_distance / single)^(j / (half - single)).
  const auto from = [&](std::int64_t j) {
    for (std::int64_t d = single;; ++d) {
      double power = 1;
      for (std::int64_t i = 0; i < half - single; ++i) power *= double(d) / double(single);
      double wanted = 1;
      for (std::int64_t i = 0; i < j; ++i) wanted *= double(max_distance) / double(single);
      if (power >= wanted * (1 - 1e-12)) return d;
    }
  };
  for (std::int64_t j = 1; j < half - single; ++j)
    bucket = add(bucket, where(less(fill(m, {}, dtype::f32, double(from(j)) - 0.5, at), distance, at), one, zero, at), at);
  if (!causal) bucket = add(bucket, where(less(behind, zero, at), fill(m, {}, dtype::f32, double(half), at), zero, at), at);
  const auto rows = embedding(table, reshape(cast(bucket, dtype::i32, at), {S * T}, at), at);
  return permute(reshape(rows, {dim(S), dim(T), table.dims().axis(1)}, at), {2, 0, 1}, at);
}

}  // namespace isotope::nn
