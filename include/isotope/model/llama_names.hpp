#pragma once
/// The tensors of Llama, Qwen 2 and Qwen 3 as Hugging Face stores them: queries, keys and values are three tensors there, gate and up two.
/// Source: huggingface/transformers, models/llama, models/qwen2 and models/qwen3.
#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "llama.hpp"
#include "stored_names.hpp"

namespace isotope::model {

/// The table for given sizes. It must outlive what it converts to.
class llama_names {
 public:
  static constexpr std::string_view prefix = "model.";

  constexpr explicit llama_names(const llama& g) {
    const std::int64_t H = g.heads, G = g.kv_heads, all = g.all_heads();
    const auto packed = [&](std::string_view ours, std::string_view q, std::string_view k, std::string_view v) {
      add({ours, q, false, 0, H, all});
      add({ours, k, false, H, G, all});
      add({ours, v, false, H + G, G, all});
    };
    add({"embed_tokens.weight", "model.embed_tokens.weight"});
    add({"layers.#.input_layernorm.weight", "model.layers.#.input_layernorm.weight"});
    packed("layers.#.self_attn.qkv_proj.weight", "model.layers.#.self_attn.q_proj.weight", "model.layers.#.self_attn.k_proj.weight",
           "model.layers.#.self_attn.v_proj.weight");
    if (g.qkv_bias)
      packed("layers.#.self_attn.qkv_proj.bias", "model.layers.#.self_attn.q_proj.bias", "model.layers.#.self_attn.k_proj.bias",
             "model.layers.#.self_attn.v_proj.bias");
    if (g.qk_norm) {
      add({"layers.#.self_attn.q_norm.weight", "model.layers.#.self_attn.q_norm.weight"});
      add({"layers.#.self_attn.k_norm.weight", "model.layers.#.self_attn.k_norm.weight"});
    }
    add({"layers.#.self_attn.o_proj.weight", "model.layers.#.self_attn.o_proj.weight"});
    add({"layers.#.post_attention_layernorm.weight", "model.layers.#.post_attention_layernorm.weight"});
    add({"layers.#.mlp.gate_up_proj.weight", "model.layers.#.mlp.gate_proj.weight", false, 0, 1, 2});
    add({"layers.#.mlp.gate_up_proj.weight", "model.layers.#.mlp.up_proj.weight", false, 1, 1, 2});
    add({"layers.#.mlp.down_proj.weight", "model.layers.#.mlp.down_proj.weight"});
    add({"norm.weight", "model.norm.weight"});
    if (g.tied) copies_ = 1;
    else add({"lm_head.weight", "lm_head.weight"});
    for (std::size_t k = 0; k < count_; ++k) {
      bare_[k] = rows_[k];
      if (bare_[k].theirs.substr(0, prefix.size()) == prefix) bare_[k].theirs.remove_prefix(prefix.size());
    }
  }

  /// For reading: `model.` may be missing, as in the folder of a model without a head.
  constexpr stored_names to_read() const { return {prefix, std::span(bare_).first(count_), ignored, std::span(copies).first(copies_)}; }
  /// For writing, with whole names.
  constexpr stored_names to_write() const { return {{}, std::span(rows_).first(count_), ignored, std::span(copies).first(copies_)}; }

 private:
  /// Frequencies of rope, which older versions of transformers stored.
  static constexpr std::array<std::string_view, 1> ignored{{"layers.#.self_attn.rotary_emb.inv_freq"}};
  static constexpr std::array<stored_copy, 1> copies{{{"lm_head.weight", "embed_tokens.weight"}}};

  std::array<stored_name, 18> rows_{}, bare_{};
  std::size_t count_ = 0, copies_ = 0;

  constexpr void add(const stored_name& n) { rows_[count_++] = n; }
};

}  // namespace isotope::model
