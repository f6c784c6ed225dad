#pragma once
/// BERT as a folder of Hugging Face: the sizes that config.json gives, and what of it `model::bert` does not compute; what the files of sentence-transformers
/// beside it say of sentence embeddings.
/// Source: huggingface/transformers, models/bert/configuration_bert.py; sentence-transformers, models/Transformer.py, Pooling.py, Normalize.py.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <isotope/core/error.hpp>
#include <isotope/interop/stored_weights.hpp>
#include <isotope/io/json_fields.hpp>
#include <isotope/io/model_folder.hpp>
#include <isotope/model/bert.hpp>
#include <isotope/model/bert_names.hpp>

namespace isotope::interop {

/// How a folder makes one vector of a sentence.
struct sentence_config {
  pooling_kind pooling = pooling_kind::mean;
  bool normalise = false;
  int most_tokens = 0;  // of a sentence, with those that the tokenizer adds at both ends; further ones are cut off
};
/// What a configuration says of a BERT.
struct bert_config {
  model::bert size;         // its dropout is that of the branches, `hidden_dropout_prob`
  bool one_dropout = true;  // whether attention drops with the same probability, as in model::bert
  sentence_config sentence;
};

namespace detail {

/// The files of sentence-transformers: modules.json lists modules, each in a folder of its own.
inline constexpr std::string_view modules_name = "modules.json", sentence_name = "sentence_bert_config.json";
inline constexpr std::uint64_t most_modules_bytes = 1 << 16;

/// Reads the pooling of the folder of a module.
/// @error invalid_model: a pooling other than one of mean and cls; bad_format; as io::detail::read_object
inline result<pooling_kind> read_pooling(const std::string& path, std::int32_t width) {
  const auto root = io::detail::read_object(path, most_modules_bytes);
  if (!root) return root.error();
  io::json_fields f(*root, path);
  constexpr std::string_view start = "pooling_mode_", mean = "pooling_mode_mean_tokens", cls = "pooling_mode_cls_token";
  bool by_mean = f.boolean(mean, false), by_cls = f.boolean(cls, false);
  for (const io::json_member& m : root->members)
    if (m.key.starts_with(start) && m.key != mean && m.key != cls && f.boolean(m.key, false))
      f.refuse(m.key, "is true, isotope pools by mean_tokens or cls_token", "give a model with one of these", errc::invalid_model);
  if (const std::string mode = f.text("pooling_mode", ""); mode == "mean") by_mean = true;
  else if (mode == "cls") by_cls = true;
  else if (!mode.empty())
    f.refuse("pooling_mode", "is " + io::json_string(mode) + ", isotope pools by mean or cls", "give a model with one of these",
             errc::invalid_model);
  if (by_mean == by_cls)
    f.refuse(mean, by_mean ? "is true, and so is pooling_mode_cls_token" : "is not true, nor is pooling_mode_cls_token",
             "give a model that pools by one of them", errc::invalid_model);
  if (const std::int32_t given = f.find("word_embedding_dimension") == nullptr ? width : f.whole("word_embedding_dimension", 1, 1000000);
      given != width)
    f.refuse("word_embedding_dimension", "is " + std::to_string(given) + ", the model's hidden_size is " + std::to_string(width),
             "fetch the folder again");
  if (auto r = f.status(); !r) return std::move(r).error();
  return by_cls ? pooling_kind::first : pooling_kind::mean;
}

/// Reads modules.json: the model, its pooling, and maybe the division by the norm, in this order.
/// @error invalid_model: another module; bad_format; as io::detail::read_json and read_pooling
inline result<void> read_modules(const std::string& folder, std::int32_t width, sentence_config& to) {
  const std::string path = folder + "/" + std::string(modules_name);
  const auto root = io::detail::read_json(path, most_modules_bytes, io::json::kind::array);
  if (!root) return root.error();
  constexpr std::array<std::string_view, 3> expected = {"Transformer", "Pooling", "Normalize"};
  for (std::size_t k = 0; k < root->items.size(); ++k) {
    const io::json& module = root->items[k];
    const std::string where = path + ":" + std::to_string(module.line);
    if (module.is != io::json::kind::object) return fail(errc::bad_format, "a module is not an object", where, "fetch the folder again");
    io::json_fields f(module, path);
    const std::string type = f.text("type", ""), place = f.text("path", "");
    if (auto r = f.status(); !r) return r;
    const std::string_view name = std::string_view(type).substr(type.rfind('.') + 1);
    if (k >= expected.size() || name != expected[k] || !type.starts_with("sentence_transformers."))
      return fail(errc::invalid_model,
                  "module " + std::to_string(k) + " is " + io::json_string(io::detail::shown(type)) +
                      ", isotope computes Transformer, Pooling and Normalize, in this order",
                  where, "give a model of these modules");
    if (k == 0 && !place.empty())
      return fail(errc::invalid_model, "the Transformer is in " + io::json_string(io::detail::shown(place)) + ", not in the folder itself",
                  where, "give a folder with config.json beside modules.json");
    if (k == 1) {
      if (place.empty() || place.size() > 100 || place.front() == '.' || place.find('/') != place.npos)
        return fail(errc::bad_format, io::json_string(io::detail::shown(place)) + " is not the name of a folder in this one", where,
                    "fetch the folder again");
      const auto pooling = read_pooling(folder + "/" + place + "/config.json", width);
      if (!pooling) return pooling.error();
      to.pooling = *pooling;
    }
    to.normalise = k == 2;
  }
  if (root->items.size() >= 2) return {};
  return fail(errc::invalid_model, "has no module for the pooling", path, "give a model of the modules Transformer and Pooling");
}

/// Reads the longest sentence from sentence_bert_config.json, if it is there.
inline result<void> read_sentence_length(const std::string& folder, std::int32_t context, sentence_config& to) {
  const std::string path = folder + "/" + std::string(sentence_name);
  if (io::detail::kind_of_file(path) == io::detail::file_kind::none) return {};
  const auto root = io::detail::read_object(path, most_modules_bytes);
  if (!root) return root.error();
  io::json_fields f(*root, path);
  if (f.find("max_seq_length") != nullptr) to.most_tokens = std::min(context, f.whole("max_seq_length", 1, 1000000));
  if (f.boolean("do_lower_case", false))
    f.refuse("do_lower_case", "is true, isotope leaves lower case to the tokenizer", "set it in tokenizer.json instead",
             errc::invalid_model);
  return f.status();
}

}  // namespace detail

/// Reads the configuration of a folder. Without the files of sentence-transformers, sentences are pooled by the mean without a norm, and are as long as
/// positions reach: what sentence-transformers makes of such a folder.
///
/// @error invalid_model: the model of another family, or what model::bert does not compute, with the field and its line; bad_format: a field is missing or of
/// another type or range; as io::detail::read_json
inline result<bert_config> read_bert_config(const io::model_folder& folder) {
  if (folder.family.type != "bert")
    return fail(errc::invalid_model, "is a " + std::string(folder.family.name) + " (model_type '" + std::string(folder.family.type) + "')",
                folder.config_path(), "give the folder of a BERT");
  io::json_fields f(folder.config, folder.config_path());
  bert_config c;
  model::bert& b = c.size;
  b.layers = f.whole("num_hidden_layers", 1, 1000);
  b.heads = f.whole("num_attention_heads", 1, 10000);
  b.width = f.whole("hidden_size", 1, 1000000);
  b.hidden = f.whole("intermediate_size", 1, 1000000000);
  b.vocab = f.whole("vocab_size", 1, 1000000000);
  b.context = f.whole("max_position_embeddings", 1, 1000000);
  b.types = f.whole("type_vocab_size", 1, 1000000);

  const auto unsupported = [&](std::string_view key, std::string what) {
    f.refuse(key, std::move(what), "give a BERT with the published form of this field", errc::invalid_model);
  };
  if (const std::string a = f.text("hidden_act", "gelu"); a != "gelu" && a != "gelu_python")  // two names of the form with erf
    unsupported("hidden_act", "is " + io::json_string(a) + ", isotope computes gelu");
  if (const std::string p = f.text("position_embedding_type", "absolute"); p != "absolute")
    unsupported("position_embedding_type", "is " + io::json_string(p) + ", isotope computes absolute");
  if (const double e = f.number("layer_norm_eps", model::bert_epsilon); e != model::bert_epsilon)
    unsupported("layer_norm_eps", "is " + io::number_text(e) + ", isotope computes 1e-12");
  if (f.find("embedding_size") != nullptr)
    if (const std::int32_t e = f.whole("embedding_size", 1, 1000000); e != b.width)
      unsupported("embedding_size", "is " + std::to_string(e) + ", isotope computes hidden_size = " + std::to_string(b.width));
  for (const std::string_view key : {"is_decoder", "add_cross_attention"})
    if (f.boolean(key, false)) unsupported(key, "is true, which isotope does not compute");
  if (const io::json* heads = f.find("pruned_heads"); heads != nullptr && !(heads->members.empty() && heads->items.empty()))
    unsupported("pruned_heads", "is set, isotope computes every head");
  if (f.find("quantization_config") != nullptr) unsupported("quantization_config", "is set, isotope reads weights in F32, F16 and BF16");

  b.dropout = f.number("hidden_dropout_prob", 0.1);
  c.one_dropout = b.dropout == f.number("attention_probs_dropout_prob", 0.1);
  if (auto r = f.status(); !r) return std::move(r).error();
  if (const auto wrong = validate(b); !wrong.empty())
    return fail(errc::bad_format, std::string(wrong.view()), folder.config_path(), "correct the sizes");

  c.sentence.most_tokens = b.context;
  if (io::detail::kind_of_file(folder.path + "/" + std::string(detail::modules_name)) != io::detail::file_kind::none)
    if (auto r = detail::read_modules(folder.path, b.width, c.sentence); !r) return std::move(r).error();
  if (auto r = detail::read_sentence_length(folder.path, b.context, c.sentence); !r) return std::move(r).error();
  return c;
}

/// Matches the tensors of a folder with the parameters of a BERT. Tensors of heads that the model does not have, such as `pooler.dense.weight` for pooled
/// embeddings, are in weight_match::left_out.
/// @error as match_weights
inline result<weight_match> match_bert(const io::model_folder& folder, std::span<const slot> slots) {
  return match_weights(folder, model::bert_names, slots);
}

}  // namespace isotope::interop
