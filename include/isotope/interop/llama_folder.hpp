#pragma once
/// Llama 3, Qwen 2 and Qwen 3 as folders of Hugging Face: the sizes that config.json gives, and what of it `model::llama` does not compute;
/// writing such a folder.
/// Source: huggingface/transformers, configuration_llama.py, configuration_qwen2.py, configuration_qwen3.py, modeling_rope_utils.py.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <isotope/core/error.hpp>
#include <isotope/interop/save_weights.hpp>
#include <isotope/interop/stored_weights.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/json_fields.hpp>
#include <isotope/io/model_folder.hpp>
#include <isotope/model/llama.hpp>
#include <isotope/model/llama_names.hpp>

namespace isotope::interop {

/// What a configuration says of a Llama or Qwen.
struct llama_config {
  model::llama size;
  double attention_dropout = 0;  // of training in transformers; model::llama does not drop
};

namespace detail {

inline constexpr std::string_view llama_fix = "give a model with the published form of this field";

/// Reads the parameters of rope: the object `rope_parameters`, or the older `rope_scaling` beside `rope_theta`.
/// @error invalid_model: a kind of scaling that is not computed; bad_format: a field is missing or of another type
inline result<void> read_rope(io::json_fields& f, const std::string& path, model::llama& g) {
  const auto unsupported = [](io::json_fields& in, std::string_view key, std::string what) {
    in.refuse(key, std::move(what), std::string(llama_fix), errc::invalid_model);
  };
  g.theta = f.number("rope_theta", 10000);
  if (const double part = f.number("partial_rotary_factor", 1); part != 1)
    unsupported(f, "partial_rotary_factor", "is " + io::number_text(part) + ", isotope rotates whole heads");
  const bool both = f.find("rope_parameters") != nullptr && f.find("rope_scaling") != nullptr;
  if (both) f.refuse("rope_scaling", "stands beside rope_parameters", "keep one of the two");
  const std::string_view key = f.find("rope_parameters") != nullptr ? "rope_parameters" : "rope_scaling";
  const io::json* object = f.find(key);
  if (object == nullptr || both) return f.status();
  if (object->is != io::json::kind::object) f.refuse(key, "is " + io::json_fields::text_of(*object), "give an object");
  if (auto r = f.status(); !r) return r;

  constexpr std::array<std::string_view, 8> known = {"rope_type",
                                                     "type",
                                                     "rope_theta",
                                                     "factor",
                                                     "low_freq_factor",
                                                     "high_freq_factor",
                                                     "partial_rotary_factor",
                                                     "original_max_position_embeddings"};
  io::json_fields rope(*object, path);
  for (const io::json_member& m : object->members)
    if (std::find(known.begin(), known.end(), m.key) == known.end() && m.value.is != io::json::kind::null)
      unsupported(rope, m.key, "is set in " + std::string(key) + ", which isotope does not compute");
  const std::string_view name = rope.find("rope_type") != nullptr ? "rope_type" : "type";
  const std::string type = rope.text(name, "default");
  g.theta = rope.number("rope_theta", g.theta);
  if (const double part = rope.number("partial_rotary_factor", 1); part != 1)
    unsupported(rope, "partial_rotary_factor", "is " + io::number_text(part) + ", isotope rotates whole heads");
  if (type == "llama3") {
    const auto number = [&](std::string_view of) {
      if (rope.find(of) == nullptr) rope.refuse(of, "is missing", "write it into the file");
      return rope.number(of, 0);
    };
    g.scaling = {.context = rope.whole("original_max_position_embeddings", 1, 100000000),
                 .factor = number("factor"),
                 .low = number("low_freq_factor"),
                 .high = number("high_freq_factor")};
  } else if (type != "default") {
    unsupported(rope, name, "is " + io::json_string(type) + ", isotope computes \"default\" and \"llama3\"");
  }
  return rope.status();
}

}  // namespace detail

/// Reads the configuration of a folder.
///
/// @error invalid_model: the model of another family, or one that model::llama does not compute, with the field and its line; bad_format: a
/// field is missing or of another type or range
inline result<llama_config> read_llama_config(const io::model_folder& folder) {
  const std::string_view type = folder.family.type;
  const bool qwen = type == "qwen2" || type == "qwen3";
  if (type != "llama" && !qwen)
    return fail(errc::invalid_model,
                std::string(folder.family.name) + " (model_type '" + std::string(type) + "') is not a Llama, a Qwen 2 or a Qwen 3",
                folder.config_path(), "give the folder of one of these");
  io::json_fields f(folder.config, folder.config_path());
  llama_config c;
  model::llama& g = c.size;
  g.layers = f.whole("num_hidden_layers", 1, 10000);
  g.heads = f.whole("num_attention_heads", 1, 10000);
  g.kv_heads = !qwen && f.find("num_key_value_heads") == nullptr ? g.heads : f.whole("num_key_value_heads", 1, 10000);
  g.width = f.whole("hidden_size", 1, 1000000);
  g.hidden = f.whole("intermediate_size", 1, 10000000);
  g.vocab = f.whole("vocab_size", 1, 1000000000);
  g.context = f.whole("max_position_embeddings", 1, 100000000);
  if (f.find("head_dim") != nullptr || type == "qwen3") g.head_size = f.whole("head_dim", 1, 100000);
  else if (g.width % g.heads != 0)
    f.refuse("num_attention_heads", "does not divide hidden_size " + std::to_string(g.width), "write head_dim into the file");
  else g.head_size = g.width / g.heads;
  g.epsilon = f.number("rms_norm_eps", 1e-6);
  g.qkv_bias = type == "qwen2";
  g.qk_norm = type == "qwen3";
  g.tied = f.boolean("tie_word_embeddings", false);
  c.attention_dropout = f.number("attention_dropout", 0);

  const auto unsupported = [&](std::string_view key, std::string what) {
    f.refuse(key, std::move(what), std::string(detail::llama_fix), errc::invalid_model);
  };
  if (const std::string a = f.text("hidden_act", "silu"); a != "silu" && a != "swish")
    unsupported("hidden_act", "is " + io::json_string(a) + ", isotope computes silu");
  for (const std::string_view key : {"attention_bias", "mlp_bias", "use_sliding_window", "use_mrope"})
    if (f.boolean(key, false) && !(key == "attention_bias" && g.qkv_bias))  // Qwen 2 has its biases whatever this field says
      unsupported(key, "is true, which isotope does not compute for " + std::string(folder.family.name));
  if (const io::json* layers = f.find("layer_types"); layers != nullptr)
    for (const io::json& x : layers->items)
      if (x.text != "full_attention")
        unsupported("layer_types", "has " + io::json_fields::text_of(x) + ", isotope computes \"full_attention\"");
  if (f.find("quantization_config") != nullptr) unsupported("quantization_config", "is set, isotope reads weights in F32, F16 and BF16");
  if (auto r = detail::read_rope(f, folder.config_path(), g); !r) return std::move(r).error();
  if (auto r = f.status(); !r) return std::move(r).error();
  if (const auto wrong = validate(g); !wrong.empty())
    return fail(errc::bad_format, std::string(wrong.view()), folder.config_path(), "correct the sizes");
  return c;
}

/// Matches the tensors of a folder with the parameters of a Llama or Qwen.
///
/// @error as match_weights; invalid_model: the configuration unties the output layer, and the folder has none
inline result<weight_match> match_llama(const io::model_folder& folder, const llama_config& config, std::span<const slot> slots) {
  if (!config.size.tied && folder.find("lm_head.weight") == folder.size())
    return fail(errc::invalid_model, "is false, and the folder has no 'lm_head.weight'", folder.config_path() + ": tie_word_embeddings",
                "give the folder of a model with its output layer");
  const model::llama_names names(config.size);
  return match_weights(folder, names.to_read(), slots);
}

/// The text of a config.json. Its tokens of beginning and end are not known.
inline std::string llama_config_text(const model::llama& g) {
  const std::string_view family = g.qk_norm ? "Qwen3" : g.qkv_bias ? "Qwen2" : "Llama";
  std::string out = "{\n";
  const auto add = [&](std::string_view key, const std::string& value) {
    out += (out.size() > 2 ? ",\n  \"" : "  \"") + std::string(key) + "\": " + value;
  };
  const auto& s = g.scaling;
  const std::string scaling =
      s.context == 0 ? "null"
                     : "{\"factor\": " + io::json_number(s.factor) + ", \"high_freq_factor\": " + io::json_number(s.high) +
                           ", \"low_freq_factor\": " + io::json_number(s.low) +
                           ", \"original_max_position_embeddings\": " + std::to_string(s.context) + ", \"rope_type\": \"llama3\"}";
  add("architectures", "[\"" + std::string(family) + "ForCausalLM\"]");
  if (family != "Qwen2") add("attention_bias", "false");
  add("attention_dropout", "0.0");
  add("bos_token_id", "null");
  add("eos_token_id", "null");
  add("head_dim", std::to_string(g.head_size));
  add("hidden_act", "\"silu\"");
  add("hidden_size", std::to_string(g.width));
  add("initializer_range", "0.02");
  add("intermediate_size", std::to_string(g.hidden));
  add("max_position_embeddings", std::to_string(g.context));
  if (family == "Llama") add("mlp_bias", "false");
  add("model_type", g.qk_norm ? "\"qwen3\"" : g.qkv_bias ? "\"qwen2\"" : "\"llama\"");
  add("num_attention_heads", std::to_string(g.heads));
  add("num_hidden_layers", std::to_string(g.layers));
  add("num_key_value_heads", std::to_string(g.kv_heads));
  add("rms_norm_eps", io::json_number(g.epsilon));
  add("rope_scaling", scaling);
  add("rope_theta", io::json_number(g.theta));
  add("tie_word_embeddings", g.tied ? "true" : "false");
  add("torch_dtype", "\"float32\"");
  if (family != "Llama") add("use_sliding_window", "false");
  add("vocab_size", std::to_string(g.vocab));
  return out + "\n}\n";
}

/// Saves a Llama or Qwen as transformers does: model.safetensors, then config.json. Each file is replaced whole or not at all; other files
/// of the folder, such as those of a tokenizer, stay. Weights are written in F32.
///
/// @error invalid_model: biases as in Qwen 2 and norms as in Qwen 3, which no family has; as make_model_folder, save_weights and
/// io::write_file
template <class Session>
result<void> save_llama(const std::string& path, Session& session, const model::llama& size, const io::file_calls& calls = {}) {
  if (size.qkv_bias && size.qk_norm)
    return fail(errc::invalid_model, "has both biases and norms of queries and keys, which no family of transformers has", path,
                "save it as a checkpoint of isotope");
  if (auto r = make_model_folder(path); !r) return r;
  const model::llama_names names(size);
  if (auto r = save_weights(path + "/" + std::string(io::detail::weights_name), session, names.to_write(), {}, calls); !r) return r;
  return io::write_file(path + "/config.json", llama_config_text(size), calls);
}

}  // namespace isotope::interop
