#pragma once
/// Llama 3, Qwen 2 and Qwen 3: pre-norm decoders with RMS norms, rotary positions, gated feed-forward layers, and fewer heads of keys and values than of
/// queries. They differ in what `llama` says. Names are those of the Hugging Face state dicts without the `model.` prefix, but the projections that read one
/// operand are packed: q, k, v are self_attn.qkv_proj, gate and up are mlp.gate_up_proj, so that each layer has four products.
/// Source: Grattafiori et al. 2024, arXiv:2407.21783; Yang et al. 2024, arXiv:2407.10671; Yang et al. 2025, arXiv:2505.09388.
#include <array>
#include <string_view>

#include "../nn/nn.hpp"
#include "../op/attention.hpp"
#include "../op/concat.hpp"
#include "../op/embedding.hpp"
#include "../op/rope.hpp"
#include "../op/silu.hpp"
#include "decoder.hpp"

namespace isotope::model {

/// Sizes of a Llama or Qwen. The type is structural, so sizes can be a template argument.
struct llama {
  using cached_logits = decoder_cached_logits<llama>;  // what generate/generator.hpp plans from these sizes

  int layers = 16, heads = 32, kv_heads = 8, width = 2048, head_size = 64;  // heads x head_size need not be the width
  int hidden = 8192;                                                        // of the feed-forward layer
  int vocab = 128256, context = 131072;                                     // context: positions; only caches take memory for them
  double epsilon = 1e-5;                                                    // of the norms
  double theta = 500000;                                                    // the base of rotation frequencies
  rope_scaling scaling{};
  bool qkv_bias = false;  // Qwen 2: queries, keys and values have biases
  bool qk_norm = false;   // Qwen 3: an RMS norm of each head of queries and keys before they rotate
  bool tied = true;       // the head is the token table
  friend constexpr bool operator==(const llama&, const llama&) = default;

  /// Heads of queries, keys and values side by side.
  constexpr int all_heads() const { return heads + 2 * kv_heads; }
};

/// Published sizes, and small ones for tests.
struct named_llama {
  std::string_view name;
  llama size;
};
inline constexpr std::array<named_llama, 7> llama_sizes{{
    {"llama-3.2-1b", {16, 32, 8, 2048, 64, 8192, 128256, 131072, 1e-5, 500000, {8192, 32, 1, 4}}},
    {"llama-3.1-8b", {32, 32, 8, 4096, 128, 14336, 128256, 131072, 1e-5, 500000, {8192, 8, 1, 4}, false, false, false}},
    {"qwen2.5-0.5b", {24, 14, 2, 896, 64, 4864, 151936, 32768, 1e-6, 1e6, {}, true}},
    {"qwen2.5-1.5b", {28, 12, 2, 1536, 128, 8960, 151936, 131072, 1e-6, 1e6, {}, true}},
    {"qwen3-0.6b", {28, 16, 8, 1024, 128, 3072, 151936, 40960, 1e-6, 1e6, {}, false, true}},
    {"qwen3-1.7b", {28, 16, 8, 2048, 128, 6144, 151936, 40960, 1e-6, 1e6, {}, false, true}},
    {"debug-tiny", {2, 4, 2, 32, 8, 48, 65, 32, 1e-5, 10000}},
}};

/// One line that says what is wrong with the sizes; empty if they are valid. It is a constant expression, so `static_assert(validate(g).empty())` works.
constexpr message validate(const llama& g) {
  message m;
  if (g.layers < 1 || g.heads < 1 || g.kv_heads < 1 || g.width < 1 || g.head_size < 1 || g.hidden < 1 || g.vocab < 1 || g.context < 1)
    return m << "llama: layers " << g.layers << ", heads " << g.heads << ", key-value heads " << g.kv_heads << ", width " << g.width
             << ", head size " << g.head_size << ", hidden " << g.hidden << ", vocab " << g.vocab << ", context " << g.context
             << ": every size must be at least 1";
  if (g.heads % g.kv_heads != 0)
    return m << "llama: heads " << g.heads << " are not a multiple of key-value heads " << g.kv_heads << ": choose a divisor";
  if (g.head_size % 2 != 0) return m << "llama: head size " << g.head_size << " is odd, and rope turns pairs: choose " << g.head_size + 1;
  if (!(g.epsilon > 0) || !(g.theta > 0)) return m << "llama: epsilon " << g.epsilon << " and theta " << g.theta << " must be positive";
  if (g.scaling.context < 0 || (g.scaling.context > 0 && !(g.scaling.factor > 0 && g.scaling.low > 0 && g.scaling.high > g.scaling.low)))
    return m << "llama: rope is scaled by " << g.scaling.factor << " from " << g.scaling.low << " to " << g.scaling.high << " at context "
             << g.scaling.context << ": factor and context must be positive, and 0 < low < high";
  return m;
}

/// The number of parameters: 1,235,814,400 for llama-3.2-1b.
constexpr std::int64_t parameter_count(const llama& g) {
  const std::int64_t C = g.width, D = g.head_size, H = g.heads, V = g.vocab, packed = g.all_heads() * D;
  const std::int64_t attention = packed * (C + (g.qkv_bias ? 1 : 0)) + H * D * C + (g.qk_norm ? 2 * D : 0);
  return (g.tied ? 1 : 2) * V * C + g.layers * (attention + 3 * C * g.hidden + 2 * C) + C;
}

/// Queries, keys and values (B, S, H + 2 G, D), with the norms of Qwen 3. The scope is that of the attention.
template <Machine M> constexpr tensor<M> llama_heads(scope<M> s, const llama& g, tensor<M> x) {
  if (!g.qk_norm) return x;
  const auto q = nn::rms_norm(s / "q_norm", narrow(x, 2, 0, g.heads), g.epsilon);
  const auto k = nn::rms_norm(s / "k_norm", narrow(x, 2, g.heads, g.kv_heads), g.epsilon);
  return concat({q, k, narrow(x, 2, g.heads + g.kv_heads, g.kv_heads)}, 2);
}
/// Queries and keys rotate, values stay.
constexpr rope_options llama_rope(const llama& g) { return {.base = g.theta, .scaling = g.scaling, .heads = g.heads + g.kv_heads}; }

/// Causal attention. qkv (B, S, (H + 2 G) D) gives (B, S, H D), or (N, (H + 2 G) D) gives (N, H D).
template <Machine M> constexpr tensor<M> attend(whole_sequences, scope<M> s, const llama& g, tensor<M> qkv) {
  const shape dims = qkv.dims();
  const auto x = llama_heads(s, g, reshape(qkv, {dims.axis(0), dims.axis(1), g.all_heads(), g.head_size}));
  return attention(reshape(rope(x, llama_rope(g)), dims), g.heads, {.kv_heads = g.kv_heads});
}
template <Machine M> constexpr tensor<M> attend(const cached_sequences<M>& of, scope<M> s, const llama& g, tensor<M> qkv) {
  const int D = g.head_size, G = g.kv_heads;
  const shape dims = qkv.dims();
  const auto heads = llama_heads(s, g, reshape(qkv, {1, dims.axis(0), g.all_heads(), D}));
  const auto x = reshape(rope(heads, of.position, llama_rope(g)), dims);
  const auto q = narrow(x, 1, 0, g.heads * D), k = narrow(x, 1, g.heads * D, G * D), v = narrow(x, 1, (g.heads + G) * D, G * D);
  return of.attend(s, q, k, v, g.heads, {of.slots, G, g.context, D});
}

/// x = x + o_proj(attention(qkv_proj(norm(x)))), then x = x + down_proj(silu(gate) up) with gate, up = gate_up_proj(norm(x)).  x (..., C)
template <Machine M, class Tokens> constexpr tensor<M> llama_block(scope<M> s, const llama& g, tensor<M> x, const Tokens& of) {
  const linear_deviations d(g.width, g.layers);
  const auto attn = s / "self_attn";
  const std::int64_t q = std::int64_t(g.heads) * g.head_size, kv = std::int64_t(g.kv_heads) * g.head_size;
  const auto qkv = nn::linear(attn / "qkv_proj", nn::rms_norm(s / "input_layernorm", x, g.epsilon), q + 2 * kv, d.linear, g.qkv_bias,
                              nn::parallel::columns({q, kv, kv}, g.kv_heads));
  x = x + nn::linear(attn / "o_proj", attend(of, attn, g, qkv), g.width, d.residual, false, nn::parallel::rows(g.kv_heads));
  const auto y = nn::rms_norm(s / "post_attention_layernorm", x, g.epsilon);
  const auto [gate, up] =
      split<2>(nn::linear(s / "mlp.gate_up_proj", y, 2 * g.hidden, d.linear, false, nn::parallel::columns({g.hidden, g.hidden})));
  return x + nn::linear(s / "mlp.down_proj", silu(gate) * up, g.width, d.residual, false, nn::parallel::rows());
}

/// Features and the weight of the head (V, C), of whole sequences, S <= context, or cached ones.
template <Machine M, class Tokens>
constexpr decoder_features<M> decoder_body(scope<M> s, const llama& g, tensor<M> tokens, const Tokens& of, place at = place::current()) {
  if (const auto wrong = validate(g); !wrong.empty() && s.machine != nullptr) s.machine->fail(wrong, at);
  const param_options words{.init = init::normal(0.02), .split = axis_split::with_padding(0)};
  const auto table = s.param("embed_tokens.weight", {g.vocab, g.width}, words);
  auto x = embedding(table, tokens);
  for (int l = 0; l < g.layers; ++l) x = nn::block(s / "layers" / l, x, [&](scope<M> h, tensor<M> y) { return llama_block(h, g, y, of); });
  x = nn::rms_norm(s / "norm", x, g.epsilon);
  return {x, g.tied ? table : s.param("lm_head.weight", {g.vocab, g.width}, words)};
}

using llama_loss_of = decoder_loss<llama>;
using llama_logits_of = decoder_logits<llama>;
using llama_cached_logits_of = decoder_cached_logits<llama>;
/// The training loss with sizes in the type, for programs that the compiler plans.
template <llama Size, int Batch, int Length> struct llama_loss : llama_loss_of {
  constexpr llama_loss() : llama_loss_of{Size, Batch, Length} {}
};

}  // namespace isotope::model
