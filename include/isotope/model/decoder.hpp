#pragma once
/// What decoders have in common: only their bodies differ. For sizes S, the function decoder_body(scope, S, tokens, of) gives the operands of the head. `of` is
/// how tokens attend, whole_sequences or cached_sequences, so that training, prefill and decoding are one model.
#include "../core/square_root.hpp"
#include "../nn/nn.hpp"
#include "../op/attention_cached.hpp"
#include "packed_tokens.hpp"

namespace isotope::model {

/// Tokens (B, S) of B whole sequences.
struct whole_sequences {};
/// Packed tokens (N) of several sequences, whose earlier keys and values are in caches. Rows of a sequence that is not a slot are idle.
template <Machine M> struct cached_sequences {
  tensor<M> sequence, position;  // (N) i32
  int slots = 1;

  /// Causal attention, which extends the caches: states `keys` and `values` (slots, G, context, D) of the scope. q (N, H D), k and v (N, G D) give (N, H D).
  constexpr tensor<M> attend(scope<M> s, tensor<M> q, tensor<M> k, tensor<M> v, int H, const shape& dims) const requires HoldsState<M> {
    const auto [keys, values] = cache_append(s.state("keys", dims), s.state("values", dims), k, v, sequence, position);
    return attention_cached(q, keys, values, sequence, position, H);
  }
};

/// Standard deviations of the initial linear weights. GPT-2 has 0.02 at width 768; at other widths a factor proportional to 1/sqrt(width) keeps the
/// magnitude of a layer's outputs. The last linear layer of each branch is divided by sqrt(2 layers), since the residual stream sums 2 layers branches.
struct linear_deviations {
  double linear, residual;
  constexpr linear_deviations(int width, int layers)
      : linear(0.02 * square_root(768.0 / width)), residual(linear / square_root(2.0 * layers)) {}
};

/// The operands of the head: features (..., C) of token ids (...), and its weight (V, C), which may be the token table.
template <Machine M> struct decoder_features {
  tensor<M> x, head;
};

/// The training loss, with sizes known at run time: cross-entropy in nats of inputs `tokens` and `targets` (batch, length), i32.
template <class S> struct decoder_loss {
  S size;
  int batch = 1, length = 1;
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    const auto tokens = s.input("tokens", {batch, length}, dtype::i32), targets = s.input("targets", {batch, length}, dtype::i32);
    const auto f = decoder_body(s, size, tokens, whole_sequences{});
    return nn::classify(f.x, f.head, targets);
  }
};
/// Next-token logits (batch, length, V), with sizes known at run time, of the input `tokens`.
template <class S> struct decoder_logits {
  S size;
  int batch = 1, length = 1;
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    const auto f = decoder_body(s, size, s.input("tokens", {batch, length}, dtype::i32), whole_sequences{});
    return matmul(f.x, transpose(f.head));
  }
};
/// Next-token logits of packed tokens whose sequences have caches, with sizes known at run time: the plan that fills the caches of a prompt (prefill), or decodes
/// one token of each sequence. Inputs: those of packed_tokens. Plans with the same `size` and `slots` share their parameters and caches.
template <class S> struct decoder_cached_logits {
  S size;
  int slots = 1;   // sequences with a cache
  int tokens = 1;  // N, tokens of a run
  int rows = 0;    // rows of logits (rows, V): those of the tokens that the input `rows` (rows) i32 numbers; 0: of all tokens
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const { return logits(s, packed_tokens<M>::inputs(s, tokens, rows)); }
  /// The same of tokens that other ops give.
  template <Machine M> constexpr tensor<M> logits(scope<M> s, const packed_tokens<M>& t) const {
    const auto f = decoder_body(s, size, t.tokens, cached_sequences<M>{t.sequence, t.position, slots});
    return matmul(t.of_rows(f.x), transpose(f.head));
  }
};

}  // namespace isotope::model
