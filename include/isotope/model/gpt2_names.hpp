#pragma once
/// The tensors of a GPT-2 as Hugging Face stores them. Its linear layers are Conv1D, whose weights are (in, out).
/// Source: huggingface/transformers, models/gpt2/modeling_gpt2.py.
#include <array>
#include <string_view>

#include "stored_names.hpp"

namespace isotope::model {

namespace gpt2_detail {

inline constexpr std::array<stored_name, 16> weights{{{"wte.weight", "wte.weight"},
                                                      {"wpe.weight", "wpe.weight"},
                                                      {"h.#.ln_1.weight", "h.#.ln_1.weight"},
                                                      {"h.#.ln_1.bias", "h.#.ln_1.bias"},
                                                      {"h.#.attn.c_attn.weight", "h.#.attn.c_attn.weight", true},
                                                      {"h.#.attn.c_attn.bias", "h.#.attn.c_attn.bias"},
                                                      {"h.#.attn.c_proj.weight", "h.#.attn.c_proj.weight", true},
                                                      {"h.#.attn.c_proj.bias", "h.#.attn.c_proj.bias"},
                                                      {"h.#.ln_2.weight", "h.#.ln_2.weight"},
                                                      {"h.#.ln_2.bias", "h.#.ln_2.bias"},
                                                      {"h.#.mlp.c_fc.weight", "h.#.mlp.c_fc.weight", true},
                                                      {"h.#.mlp.c_fc.bias", "h.#.mlp.c_fc.bias"},
                                                      {"h.#.mlp.c_proj.weight", "h.#.mlp.c_proj.weight", true},
                                                      {"h.#.mlp.c_proj.bias", "h.#.mlp.c_proj.bias"},
                                                      {"ln_f.weight", "ln_f.weight"},
                                                      {"ln_f.bias", "ln_f.bias"}}};
/// The causal mask and the number that masks, which older versions of transformers stored.
inline constexpr std::array<std::string_view, 2> ignored{{"h.#.attn.bias", "h.#.attn.masked_bias"}};
inline constexpr std::array<stored_copy, 1> copies{{{"lm_head.weight", "wte.weight"}}};

}  // namespace gpt2_detail

inline constexpr stored_names gpt2_names{"transformer.", gpt2_detail::weights, gpt2_detail::ignored, gpt2_detail::copies};

}  // namespace isotope::model
