#pragma once
/// The tensors of a BERT as Hugging Face stores them: weights are (out, in), and query, key and value are three tensors of one parameter of ours.
/// Source: huggingface/transformers, models/bert/modeling_bert.py.
#include <array>
#include <string_view>

#include "stored_names.hpp"

namespace isotope::model {

namespace bert_detail {

// clang-format off
inline constexpr std::array<stored_name, 25> weights{{
    {"embeddings.word_embeddings.weight", "embeddings.word_embeddings.weight"},
    {"embeddings.position_embeddings.weight", "embeddings.position_embeddings.weight"},
    {"embeddings.token_type_embeddings.weight", "embeddings.token_type_embeddings.weight"},
    {"embeddings.LayerNorm.weight", "embeddings.LayerNorm.weight"},
    {"embeddings.LayerNorm.bias", "embeddings.LayerNorm.bias"},
    {"encoder.layer.#.attention.self.qkv.weight", "encoder.layer.#.attention.self.query.weight", false, 0, 1, 3},
    {"encoder.layer.#.attention.self.qkv.weight", "encoder.layer.#.attention.self.key.weight", false, 1, 1, 3},
    {"encoder.layer.#.attention.self.qkv.weight", "encoder.layer.#.attention.self.value.weight", false, 2, 1, 3},
    {"encoder.layer.#.attention.self.qkv.bias", "encoder.layer.#.attention.self.query.bias", false, 0, 1, 3},
    {"encoder.layer.#.attention.self.qkv.bias", "encoder.layer.#.attention.self.key.bias", false, 1, 1, 3},
    {"encoder.layer.#.attention.self.qkv.bias", "encoder.layer.#.attention.self.value.bias", false, 2, 1, 3},
    {"encoder.layer.#.attention.output.dense.weight", "encoder.layer.#.attention.output.dense.weight"},
    {"encoder.layer.#.attention.output.dense.bias", "encoder.layer.#.attention.output.dense.bias"},
    {"encoder.layer.#.attention.output.LayerNorm.weight", "encoder.layer.#.attention.output.LayerNorm.weight"},
    {"encoder.layer.#.attention.output.LayerNorm.bias", "encoder.layer.#.attention.output.LayerNorm.bias"},
    {"encoder.layer.#.intermediate.dense.weight", "encoder.layer.#.intermediate.dense.weight"},
    {"encoder.layer.#.intermediate.dense.bias", "encoder.layer.#.intermediate.dense.bias"},
    {"encoder.layer.#.output.dense.weight", "encoder.layer.#.output.dense.weight"},
    {"encoder.layer.#.output.dense.bias", "encoder.layer.#.output.dense.bias"},
    {"encoder.layer.#.output.LayerNorm.weight", "encoder.layer.#.output.LayerNorm.weight"},
    {"encoder.layer.#.output.LayerNorm.bias", "encoder.layer.#.output.LayerNorm.bias"},
    {"pooler.dense.weight", "pooler.dense.weight"},
    {"pooler.dense.bias", "pooler.dense.bias"},
    {"classifier.weight", "classifier.weight"},
    {"classifier.bias", "classifier.bias"}}};
// clang-format on
/// The positions 0 to context - 1, and token types of zeros, which older versions of transformers stored.
inline constexpr std::array<std::string_view, 2> ignored{{"embeddings.position_ids", "embeddings.token_type_ids"}};
/// What only classifiers and language models read.
inline constexpr std::array<std::string_view, 3> heads{{"pooler.", "cls.", "classifier."}};
/// Norms in files that were converted from TensorFlow.
inline constexpr std::array<stored_ending, 2> endings{{{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}}};

}  // namespace bert_detail

inline constexpr stored_names bert_names{"bert.", bert_detail::weights, bert_detail::ignored, {}, bert_detail::heads, bert_detail::endings};

}  // namespace isotope::model
