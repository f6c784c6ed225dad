#pragma once
/// GPT-2: pre-norm decoder with learned positions and a head tied to the token table. Names are those of the Hugging Face state dict
/// without the `transformer.` prefix. Source: Radford et al. 2019; openai/gpt-2 src/model.py.
#include <array>
#include <string_view>

#include "../nn/nn.hpp"
#include "../op/attention.hpp"
#include "../op/dropout.hpp"
#include "../op/embedding.hpp"
#include "decoder.hpp"

namespace isotope::model {

/// Sizes of a GPT. The type is structural, so sizes can be a template argument.
struct gpt {
  using cached_logits = decoder_cached_logits<gpt>;  // what generate/generator.hpp plans from these sizes

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

/// Causal attention. qkv (B, S, 3 C) gives (B, S, C), or (N, 3 C) gives (N, C). Dropout applies to the probabilities of whole sequences.
template <Machine M> constexpr tensor<M> attend(whole_sequences, scope<M>, const gpt& g, tensor<M> qkv) {
  return attention(qkv, g.heads, {.dropout = g.dropout});
}
template <Machine M> constexpr tensor<M> attend(const cached_sequences<M>& of, scope<M> s, const gpt& g, tensor<M> qkv) {
  const auto [q, k, v] = split<3>(qkv, -1);
  return of.attend(s, q, k, v, g.heads, {of.slots, g.heads, g.context, g.width / g.heads});
}
/// The rows of the table (context, C) that are added to the words of tokens: one for each of the S positions of (B, S), or of each of (N).
template <Machine M> constexpr tensor<M> positions(whole_sequences, tensor<M> table, tensor<M> tokens) {
  return narrow(table, 0, 0, tokens[-1]);
}
template <Machine M> constexpr tensor<M> positions(const cached_sequences<M>& of, tensor<M> table, tensor<M>) {
  return embedding(table, of.position);
}

/// x = x + c_proj(attention(c_attn(ln_1(x)))), then x = x + mlp(ln_2(x)).  x (..., C). Dropout applies to both branches.
template <Machine M, class Tokens> constexpr tensor<M> gpt_block(scope<M> s, const gpt& g, tensor<M> x, const Tokens& of) {
  const linear_deviations d(g.width, g.layers);
  const auto heads = nn::parallel::columns({g.width, g.width, g.width}, g.heads);
  const auto qkv = nn::linear(s / "attn.c_attn", nn::layer_norm(s / "ln_1", x), 3 * g.width, d.linear, true, heads);
  const auto a = nn::linear(s / "attn.c_proj", attend(of, s / "attn", g, qkv), g.width, d.residual, true, nn::parallel::rows(g.heads));
  x = x + dropout(a, g.dropout);
  return x + dropout(nn::mlp(s / "mlp", nn::layer_norm(s / "ln_2", x), 4 * g.width, d.linear, d.residual), g.dropout);
}

/// Features and the token table (V, C), whose weights the head shares, of whole sequences, S <= context, or cached ones.
template <Machine M, class Tokens>
constexpr decoder_features<M> decoder_body(scope<M> s, const gpt& g, tensor<M> tokens, const Tokens& of, place at = place::current()) {
  if (const auto wrong = validate(g); !wrong.empty() && s.machine != nullptr) s.machine->fail(wrong, at);
  const auto wte = s.param("wte.weight", {g.vocab, g.width}, {.init = init::normal(0.02), .split = axis_split::with_padding(0)});
  const auto wpe = s.param("wpe.weight", {g.context, g.width}, init::normal(0.02));
  const auto words = embedding(wte, tokens), places = positions(of, wpe, tokens);
  auto x = dropout(words + places, g.dropout);
  for (int l = 0; l < g.layers; ++l) x = nn::block(s / "h" / l, x, [&](scope<M> h, tensor<M> y) { return gpt_block(h, g, y, of); });
  return {nn::layer_norm(s / "ln_f", x), wte};
}

using gpt_loss_of = decoder_loss<gpt>;
using gpt_logits_of = decoder_logits<gpt>;
using gpt_cached_logits_of = decoder_cached_logits<gpt>;
/// The training loss with sizes in the type, for programs that the compiler plans: `training<gpt_loss<gpt{}, 4, 1024>, target>`.
template <gpt Size, int Batch, int Length> struct gpt_loss : gpt_loss_of {
  constexpr gpt_loss() : gpt_loss_of{Size, Batch, Length} {}
};
template <gpt Size, int Batch, int Length> struct gpt_forward : gpt_logits_of {
  constexpr gpt_forward() : gpt_logits_of{Size, Batch, Length} {}
};

}  // namespace isotope::model
