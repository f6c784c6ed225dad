#pragma once
/// BERT: post-norm encoder with learned positions and token types, whose rows attend to all rows of their sequence. Names are those of the Hugging Face state
/// dict without the `bert.` prefix, but query, key and value are one parameter, `attention.self.qkv`.
/// Source: Devlin et al. 2018, arXiv:1810.04805; google-research/bert modeling.py; Wang et al. 2020, arXiv:2002.10957 (MiniLM).
#include <array>
#include <limits>
#include <string_view>

#include "../nn/nn.hpp"
#include "../op/attention.hpp"
#include "../op/attention_packed.hpp"
#include "../op/clamp.hpp"
#include "../op/div.hpp"
#include "../op/dropout.hpp"
#include "../op/embedding.hpp"
#include "../op/gelu.hpp"
#include "../op/log.hpp"
#include "../op/pool.hpp"
#include "../op/sqrt.hpp"
#include "../op/square.hpp"
#include "../op/sum.hpp"
#include "../op/tanh.hpp"

namespace isotope::model {

/// Sizes of a BERT. The type is structural, so sizes can be a template argument.
struct bert {
  int layers = 12, heads = 12, width = 768, hidden = 3072, vocab = 30522, context = 512;
  int types = 2;  // of tokens: which text of a pair they belong to
  double dropout = 0;
  friend constexpr bool operator==(const bert&, const bert&) = default;
};

inline constexpr bert minilm_l6{6, 12, 384, 1536}, bert_base{};
/// The published sizes, and a small one for tests.
struct named_bert {
  std::string_view name;
  bert size;
};
inline constexpr std::array<named_bert, 3> bert_sizes{
    {{"minilm-l6", minilm_l6}, {"bert-base", bert_base}, {"debug-tiny", {2, 4, 24, 96, 96, 32}}}};

/// One line that says what is wrong with the sizes; empty if they are valid. It is a constant expression, so `static_assert(validate(b).empty())` works.
constexpr message validate(const bert& b) {
  message m;
  if (b.layers < 1 || b.heads < 1 || b.width < 1 || b.hidden < 1 || b.vocab < 1 || b.context < 1 || b.types < 1)
    return m << "bert: layers " << b.layers << ", heads " << b.heads << ", width " << b.width << ", hidden " << b.hidden << ", vocab "
             << b.vocab << ", context " << b.context << ", types " << b.types << ": every size must be at least 1";
  if (b.width % b.heads != 0) return m << "bert: width " << b.width << " is not a multiple of heads " << b.heads;
  if (!(b.dropout >= 0 && b.dropout < 1)) return m << "bert: dropout must be in [0,1)";
  return m;
}

/// The number of parameters without those of a head: 22,565,376 for minilm_l6, 108,891,648 for bert_base.
constexpr std::int64_t parameter_count(const bert& b) {
  const std::int64_t C = b.width, F = b.hidden;
  return (std::int64_t(b.vocab) + b.context + b.types + 2) * C + b.layers * (4 * C * C + 2 * C * F + 9 * C + F);
}
static_assert(parameter_count(minilm_l6) == 22'565'376 && parameter_count(bert_base) == 108'891'648);

inline constexpr double bert_epsilon = 1e-12;  // of all norms

/// Attention within whole sequences that are padded to one length. qkv (B, S, 3 C) gives (B, S, C). Dropout applies to probabilities.
template <Machine M> struct bert_sequences {
  tensor<M> mask;  // (B, S), 1 for tokens and 0 for padding

  constexpr tensor<M> attend(const bert& b, tensor<M> qkv) const {
    return attention(qkv, log(mask), b.heads, {.causal = false, .dropout = b.dropout});
  }
  /// The rows of the table (context, C) that are added to the words of tokens (B, S): one for each of the S positions.
  constexpr tensor<M> positions(tensor<M> table, tensor<M> tokens) const { return narrow(table, 0, 0, tokens[-1]); }
};
/// Attention within packed sequences. qkv (N, 3 C) gives (N, C), without dropout and gradient.
template <Machine M> struct bert_packed {
  tensor<M> position, starts;  // (N) i32, (sequences + 1) i32

  constexpr tensor<M> attend(const bert& b, tensor<M> qkv) const {
    const auto [q, k, v] = split<3>(qkv, -1);
    return attention_packed(q, k, v, starts, b.heads);
  }
  constexpr tensor<M> positions(tensor<M> table, tensor<M>) const { return embedding(table, position); }
};

/// x = norm(x + attention(x)), then x = norm(x + output(gelu(intermediate(x)))).  x (..., C). Dropout applies to both branches.
template <Machine M, class Tokens> constexpr tensor<M> bert_block(scope<M> s, const bert& b, tensor<M> x, const Tokens& of) {
  const auto norm = [](scope<M> at, tensor<M> y) { return nn::layer_norm(at / "LayerNorm", y, bert_epsilon); };
  const scope<M> attention = s / "attention";
  const auto qkv = nn::linear(attention / "self" / "qkv", x, 3 * b.width);
  const auto a = nn::linear(attention / "output" / "dense", of.attend(b, qkv), b.width);
  x = norm(attention / "output", x + dropout(a, b.dropout));
  const auto h = gelu<op::gelu_erf>(nn::linear(s / "intermediate" / "dense", x, b.hidden));
  return norm(s / "output", x + dropout(nn::linear(s / "output" / "dense", h, b.width), b.dropout));
}

/// The features (..., C) of token ids (...) and their types (...) i32; where no types are given, all are 0. `of` gives positions and attention, so that
/// training on padded sequences and inference on packed ones are one model.
template <Machine M, class Tokens>
constexpr tensor<M> bert_body(scope<M> s, const bert& b, tensor<M> tokens, tensor<M> types, const Tokens& of, place at = place::current()) {
  if (const auto wrong = validate(b); !wrong.empty() && s.machine != nullptr) s.machine->fail(wrong, at);
  const scope<M> e = s / "embeddings";
  const auto table = [&](std::string_view kind, int rows) { return (e / kind).param("weight", {rows, b.width}, init::normal(0.02)); };
  const auto words = table("word_embeddings", b.vocab), positions = table("position_embeddings", b.context),
             kinds = table("token_type_embeddings", b.types);
  const auto kind = types.valid() ? embedding(kinds, types) : narrow(kinds, 0, 0, 1);
  const auto sum = embedding(words, tokens) + kind + of.positions(positions, tokens);
  auto x = dropout(nn::layer_norm(e / "LayerNorm", sum, bert_epsilon), b.dropout);
  for (int l = 0; l < b.layers; ++l)
    x = nn::block(s / "encoder" / "layer" / l, x, [&](scope<M> h, tensor<M> y) { return bert_block(h, b, y, of); });
  return x;
}

/// As isotope::pool, for whole sequences: x (B, S, C) and mask (B, S), 1 for tokens and 0 for padding, give (B, C). Differentiable in x.
template <Machine M> constexpr tensor<M> bert_pooled(tensor<M> x, tensor<M> mask, pooling_options o) {
  constexpr double any = std::numeric_limits<double>::infinity();
  const std::int64_t B = mask[0], S = mask[1], C = x[-1];
  auto y = reshape(o.how == pooling_kind::first ? narrow(x, 1, 0, 1) : matmul(reshape(mask, {B, 1, S}), x), {B, C});
  if (o.how == pooling_kind::mean) y = y / clamp(sum(mask, {1}, true), 1e-9, any);
  return o.normalise ? y / clamp(sqrt(sum(square(y), {1}, true)), op::pool::least_norm, any) : y;
}

/// One row for each of several sequences of packed tokens, with sizes known at run time: the plan that makes sentence embeddings (sequences, C).
/// Inputs: `tokens` and `position` (N) i32, `starts` (sequences + 1) i32 as in attention_packed. Rows of no sequence are idle; they need tokens and positions
/// that exist. With `types`, also the input `types` (N) i32. Plans with the same `size` share their parameters.
struct bert_embeddings_of {
  bert size;
  int tokens = 1, sequences = 1;  // N, sequences of a run
  pooling_kind pooling = pooling_kind::mean;
  bool normalise = true;
  bool types = false;
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    const auto input = [&](std::string_view label, int n) { return s.input(label, {n}, dtype::i32); };
    const auto ids = input("tokens", tokens), kinds = types ? input("types", tokens) : tensor<M>{};
    const bert_packed<M> of{input("position", tokens), input("starts", sequences + 1)};
    return pool(bert_body(s, size, ids, kinds, of), of.starts, {pooling, normalise});
  }
};
/// The features (N, C) of packed tokens, with the inputs of bert_embeddings_of.
struct bert_features_of {
  bert size;
  int tokens = 1, sequences = 1;
  bool types = false;
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    const auto input = [&](std::string_view label, int n) { return s.input(label, {n}, dtype::i32); };
    const auto ids = input("tokens", tokens), kinds = types ? input("types", tokens) : tensor<M>{};
    return bert_body(s, size, ids, kinds, bert_packed<M>{input("position", tokens), input("starts", sequences + 1)});
  }
};

/// Logits (batch, classes) of sequences that are padded to one length, with sizes known at run time. Inputs: `tokens` (batch, length) i32, and `mask` (batch,
/// length), 1 for tokens and 0 for padding; with `types`, also `types` (batch, length) i32. The classifier reads the mean of a sequence's rows, or its first
/// row through the pooler: tanh(dense(x)), as BertForSequenceClassification has it.
struct bert_class_logits_of {
  bert size;
  int classes = 2;
  int batch = 1, length = 1;
  pooling_kind pooling = pooling_kind::first;
  bool types = false;
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    const auto ids = [&](std::string_view label) { return s.input(label, {batch, length}, dtype::i32); };
    const auto tokens = ids("tokens"), kinds = types ? ids("types") : tensor<M>{}, mask = s.input("mask", {batch, length});
    auto x = bert_pooled(bert_body(s, size, tokens, kinds, bert_sequences<M>{mask}), mask, {.how = pooling});
    if (pooling == pooling_kind::first) x = tanh(nn::linear(s / "pooler" / "dense", x, size.width));
    return nn::linear(s / "classifier", dropout(x, size.dropout), classes);
  }
};
/// The training loss: cross-entropy in nats of bert_class_logits_of and the input `labels` (batch) i32. A label outside [0, classes) does not count.
struct bert_class_loss_of : bert_class_logits_of {
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    const auto logits = bert_class_logits_of::operator()(s);
    return cross_entropy(logits, s.input("labels", {batch}, dtype::i32));
  }
};

}  // namespace isotope::model
