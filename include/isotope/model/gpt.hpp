#pragma once
/// GPT-2: pre-norm decoder with learned positions and a head tied to the token table. Names are those of the Hugging Face state dict
/// without the `transformer.` prefix. Source: Radford et al. 2019; openai/gpt-2 src/model.py.
#include <array>
#include <string_view>

#include "../core/square_root.hpp"
#include "../nn/nn.hpp"
#include "../op/attention.hpp"
#include "../op/attention_cached.hpp"
#include "../op/dropout.hpp"
#include "../op/embedding.hpp"
#include "packed_tokens.hpp"

namespace isotope::model {

struct gpt_cached_logits_of;

/// Sizes of a GPT. The type is structural, so sizes can be a template argument.
struct gpt {
  using cached_logits = gpt_cached_logits_of;  // what generate/generator.hpp plans from these sizes

  int layers = 12, heads = 12, width = 768, vocab = 50257, context = 1024;
  double dropout = 0;
  friend constexpr bool operator==(const gpt&, const gpt&) = default;
};

/// The published sizes, and small ones for character models and tests.
struct named_gpt {
  std::string_view name;
  gpt size;
};
inline constexpr std::array<named_gpt, 7> gpt_sizes{{
    {"gpt2-124m", {12, 12, 768, 50257, 1024}},
    {"gpt2-355m", {24, 16, 1024, 50257, 1024}},
    {"gpt2-774m", {36, 20, 1280, 50257, 1024}},
    {"gpt2-1558m", {48, 25, 1600, 50257, 1024}},
    {"char-gpt", {6, 6, 384, 65, 256, 0.2}},
    {"char-gpt-cpu", {4, 4, 128, 65, 64}},
    {"debug-tiny", {2, 2, 32, 65, 32}},
}};

/// One line that says what is wrong with the sizes; empty if they are valid. It is a constant expression, so `static_assert(validate(g).empty())` works.
constexpr message validate(const gpt& g) {
  message m;
  if (g.layers < 1 || g.heads < 1 || g.width < 1 || g.vocab < 1 || g.context < 1)
    return m << "gpt: layers " << g.layers << ", heads " << g.heads << ", width " << g.width << ", vocab " << g.vocab << ", context "
             << g.context << ": every size must be at least 1";
  if (g.width % g.heads != 0)
    return m << "gpt: width " << g.width << " is not a multiple of heads " << g.heads << ": choose "
             << g.width - g.width % g.heads + (g.width < g.heads ? g.heads : 0);
  if (!(g.dropout >= 0 && g.dropout < 1)) return m << "gpt: dropout must be in [0,1)";
  return m;
}

/// The number of parameters: 124,439,808 for gpt2-124m.
constexpr std::int64_t parameter_count(const gpt& g) {
  const std::int64_t C = g.width;
  return (std::int64_t(g.vocab) + g.context) * C + g.layers * (12 * C * C + 13 * C) + 2 * C;
}

/// Standard deviations of the initial linear weights. GPT-2 has 0.02 at width 768; at other widths a factor proportional to 1/sqrt(width) keeps the
/// magnitude of a layer's outputs. The last linear layer of each branch is divided by sqrt(2 layers), since the residual stream sums 2 layers branches.
struct gpt_deviations {
  double linear, residual;
  constexpr explicit gpt_deviations(const gpt& g)
      : linear(0.02 * square_root(768.0 / g.width)), residual(linear / square_root(2.0 * g.layers)) {}
};

/// Causal attention within whole sequences. qkv (B, S, 3 C) gives (B, S, C). Dropout applies to probabilities.
struct gpt_sequences {
  template <Machine M> constexpr tensor<M> attend(scope<M>, const gpt& g, tensor<M> qkv) const {
    return attention(qkv, g.heads, {.dropout = g.dropout});
  }
  /// The rows of the table (context, C) that are added to the words of tokens (B, S): one for each of the S positions.
  template <Machine M> constexpr tensor<M> positions(tensor<M> table, tensor<M> tokens) const { return narrow(table, 0, 0, tokens[-1]); }
};
/// Attention of packed tokens of several sequences, whose earlier keys and values are in caches, which it extends: states `keys` and `values` of the scope,
/// (slots, heads, context, head size). qkv (N, 3 C) gives (N, C). Rows of a sequence that is not a slot are idle.
template <Machine M> struct gpt_cache {
  tensor<M> sequence, position;  // (N) i32
  int slots = 1;

  constexpr tensor<M> attend(scope<M> s, const gpt& g, tensor<M> qkv) const requires HoldsState<M> {
    const auto [q, k, v] = split<3>(qkv, -1);
    const shape dims{slots, g.heads, g.context, g.width / g.heads};
    const auto [keys, values] = cache_append(s.state("keys", dims), s.state("values", dims), k, v, sequence, position);
    return attention_cached(q, keys, values, sequence, position, g.heads);
  }
  constexpr tensor<M> positions(tensor<M> table, tensor<M>) const { return embedding(table, position); }
};

/// x = x + c_proj(attention(c_attn(ln_1(x)))), then x = x + mlp(ln_2(x)).  x (..., C). Dropout applies to both branches.
template <Machine M, class Tokens> constexpr tensor<M> gpt_block(scope<M> s, const gpt& g, tensor<M> x, const Tokens& of) {
  const gpt_deviations d(g);
  const auto qkv = nn::linear(s / "attn.c_attn", nn::layer_norm(s / "ln_1", x), 3 * g.width, d.linear);
  const auto a = nn::linear(s / "attn.c_proj", of.attend(s / "attn", g, qkv), g.width, d.residual);
  x = x + dropout(a, g.dropout);
  return x + dropout(nn::mlp(s / "mlp", nn::layer_norm(s / "ln_2", x), 4 * g.width, d.linear, d.residual), g.dropout);
}

/// The operands of the head: features (..., C) of token ids (...), and the token table (V, C) whose weights it shares.
template <Machine M> struct gpt_features {
  tensor<M> x, wte;
};
/// The features of tokens: whole sequences (B, S) by gpt_sequences, S <= context, or packed ones (N) by gpt_cache. `of` gives their positions and attention,
/// so that training, prefill and decoding are one model.
template <Machine M, class Tokens = gpt_sequences>
constexpr gpt_features<M> gpt_body(scope<M> s, const gpt& g, tensor<M> tokens, const Tokens& of = {}, place at = place::current()) {
  if (const auto wrong = validate(g); !wrong.empty() && s.machine != nullptr) s.machine->fail(wrong, at);
  const auto wte = s.param("wte.weight", {g.vocab, g.width}, init::normal(0.02));
  const auto wpe = s.param("wpe.weight", {g.context, g.width}, init::normal(0.02));
  const auto words = embedding(wte, tokens), positions = of.positions(wpe, tokens);
  auto x = dropout(words + positions, g.dropout);
  for (int l = 0; l < g.layers; ++l) x = nn::block(s / "h" / l, x, [&](scope<M> h, tensor<M> y) { return gpt_block(h, g, y, of); });
  return {nn::layer_norm(s / "ln_f", x), wte};
}
/// Logits (B, S, V) of token ids (B, S), S <= context.
template <Machine M> constexpr tensor<M> gpt_logits(scope<M> s, const gpt& g, tensor<M> tokens, place at = place::current()) {
  const auto f = gpt_body(s, g, tokens, gpt_sequences{}, at);
  return matmul(f.x, transpose(f.wte));
}

/// The training loss, with sizes known at run time: cross-entropy in nats of inputs `tokens` and `targets` (batch, length), i32.
struct gpt_loss_of {
  gpt size;
  int batch = 1, length = 1;
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    const auto tokens = s.input("tokens", {batch, length}, dtype::i32), targets = s.input("targets", {batch, length}, dtype::i32);
    const auto f = gpt_body(s, size, tokens);
    return nn::classify(f.x, f.wte, targets);
  }
};
/// Next-token logits (batch, length, V), with sizes known at run time, of the input `tokens`.
struct gpt_logits_of {
  gpt size;
  int batch = 1, length = 1;
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    return gpt_logits(s, size, s.input("tokens", {batch, length}, dtype::i32));
  }
};
/// Next-token logits of packed tokens whose sequences have caches, with sizes known at run time: the plan that fills the caches of a prompt (prefill), or decodes
/// one token of each sequence. Inputs: those of packed_tokens. Plans with the same `size` and `slots` share their parameters and caches.
struct gpt_cached_logits_of {
  gpt size;
  int slots = 1;   // sequences with a cache
  int tokens = 1;  // N, tokens of a run
  int rows = 0;    // rows of logits (rows, V): those of the tokens that the input `rows` (rows) i32 numbers; 0: of all tokens
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const { return logits(s, packed_tokens<M>::inputs(s, tokens, rows)); }
  /// The same of tokens that other ops give.
  template <Machine M> constexpr tensor<M> logits(scope<M> s, const packed_tokens<M>& t) const {
    const auto f = gpt_body(s, size, t.tokens, gpt_cache<M>{t.sequence, t.position, slots});
    return matmul(t.of_rows(f.x), transpose(f.wte));
  }
};
/// The training loss with sizes in the type, for programs that the compiler plans: `training<gpt_loss<gpt{}, 4, 1024>, target>`.
template <gpt Size, int Batch, int Length> struct gpt_loss : gpt_loss_of {
  constexpr gpt_loss() : gpt_loss_of{Size, Batch, Length} {}
};
template <gpt Size, int Batch, int Length> struct gpt_forward : gpt_logits_of {
  constexpr gpt_forward() : gpt_logits_of{Size, Batch, Length} {}
};

}  // namespace isotope::model
