#pragma once
/// GPT-2 as a folder of Hugging Face: the sizes that config.json gives, and what of it `model::gpt` does not compute; writing such a
/// folder.
/// Source: huggingface/transformers, models/gpt2/configuration_gpt2.py.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <isotope/core/error.hpp>
#include <isotope/interop/save_weights.hpp>
#include <isotope/interop/stored_weights.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/json_fields.hpp>
#include <isotope/io/model_folder.hpp>
#include <isotope/model/gpt.hpp>
#include <isotope/model/gpt2_names.hpp>

namespace isotope::interop {

/// What a configuration says of a GPT-2.
struct gpt2_config {
  model::gpt size;          // its dropout is that of the branches, `resid_pdrop`
  bool one_dropout = true;  // whether embeddings, attention and branches drop with the same probability, as model::gpt does
  bool tied = true;         // false: the folder must have an output layer, and it must equal the token table
};

/// Reads the configuration of a folder.
///
/// @error invalid_model: the model of another family, or of a GPT-2 that model::gpt does not compute, with the field and its line;
/// bad_format: a field is missing or of another type or range
inline result<gpt2_config> read_gpt2_config(const io::model_folder& folder) {
  if (folder.family.type != "gpt2")
    return fail(errc::invalid_model,
                std::string(folder.family.name) + " (model_type '" + std::string(folder.family.type) + "') is not a GPT-2",
                folder.config_path(), "give the folder of a GPT-2");
  io::json_fields f(folder.config, folder.config_path());
  gpt2_config c;
  model::gpt& g = c.size;
  g.layers = f.whole("n_layer", 1, 1000);
  g.heads = f.whole("n_head", 1, 10000);
  g.width = f.whole("n_embd", 1, 1000000);
  g.vocab = f.whole("vocab_size", 1, 1000000000);
  g.context = f.whole(f.find("n_positions") == nullptr && f.find("n_ctx") != nullptr ? "n_ctx" : "n_positions", 1, 1000000);

  const auto unsupported = [&](std::string_view key, std::string what) {
    f.refuse(key, std::move(what), "give a GPT-2 with the published form of this field", errc::invalid_model);
  };
  // The three names are of one formula, the form with tanh.
  constexpr std::array<std::string_view, 3> tanh_forms = {"gelu_new", "gelu_pytorch_tanh", "gelu_fast"};
  if (const std::string a = f.text("activation_function", "gelu_new");
      std::find(tanh_forms.begin(), tanh_forms.end(), a) == tanh_forms.end())
    unsupported("activation_function", "is " + io::json_string(a) + ", isotope computes gelu_new");
  if (f.find("n_inner") != nullptr)
    if (const std::int32_t inner = f.whole("n_inner", 1, 1000000000); std::int64_t(inner) != std::int64_t(4) * g.width)
      unsupported("n_inner", "is " + std::to_string(inner) + ", isotope computes 4 n_embd = " + std::to_string(std::int64_t(4) * g.width));
  if (const double e = f.number("layer_norm_epsilon", 1e-5); e != 1e-5)
    unsupported("layer_norm_epsilon", "is " + io::number_text(e) + ", isotope computes 1e-05");
  if (!f.boolean("scale_attn_weights", true)) unsupported("scale_attn_weights", "is false, isotope divides scores by sqrt(head size)");
  for (const std::string_view key : {"scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "add_cross_attention"})
    if (f.boolean(key, false)) unsupported(key, "is true, which isotope does not compute");
  if (f.find("quantization_config") != nullptr) unsupported("quantization_config", "is set, isotope reads weights in F32, F16 and BF16");
  c.tied = f.boolean("tie_word_embeddings", true);

  g.dropout = f.number("resid_pdrop", 0.1);
  c.one_dropout = g.dropout == f.number("embd_pdrop", 0.1) && g.dropout == f.number("attn_pdrop", 0.1);
  if (auto r = f.status(); !r) return std::move(r).error();
  if (const auto wrong = validate(g); !wrong.empty())
    return fail(errc::bad_format, std::string(wrong.view()), folder.config_path(), "correct the sizes");
  return c;
}

/// Matches the tensors of a folder with the parameters of a GPT-2.
///
/// @error as match_weights; invalid_model: the configuration unties the output layer, and the folder has none
inline result<weight_match> match_gpt2(const io::model_folder& folder, const gpt2_config& config, std::span<const slot> slots) {
  if (!config.tied && folder.find("lm_head.weight") == folder.size())
    return fail(errc::invalid_model, "is false, and the folder has no 'lm_head.weight'", folder.config_path() + ": tie_word_embeddings",
                "give the folder of a model with its output layer");
  return match_weights(folder, model::gpt2_names, slots);
}

/// The text of a config.json. The published vocabulary has its end-of-text token; for another none is known.
inline std::string gpt2_config_text(const model::gpt& g) {
  const std::string end = g.vocab == 50257 ? "50256" : "null", drop = io::json_number(g.dropout);
  std::string out = "{\n";
  const auto add = [&](std::string_view key, const std::string& value) {
    out += (out.size() > 2 ? ",\n  \"" : "  \"") + std::string(key) + "\": " + value;
  };
  add("activation_function", "\"gelu_new\"");
  add("architectures", "[\"GPT2LMHeadModel\"]");
  add("attn_pdrop", drop);
  add("bos_token_id", end);
  add("embd_pdrop", drop);
  add("eos_token_id", end);
  add("initializer_range", "0.02");
  add("layer_norm_epsilon", "1e-05");
  add("model_type", "\"gpt2\"");
  add("n_ctx", std::to_string(g.context));
  add("n_embd", std::to_string(g.width));
  add("n_head", std::to_string(g.heads));
  add("n_inner", "null");
  add("n_layer", std::to_string(g.layers));
  add("n_positions", std::to_string(g.context));
  add("resid_pdrop", drop);
  add("tie_word_embeddings", "true");
  add("torch_dtype", "\"float32\"");
  add("vocab_size", std::to_string(g.vocab));
  return out + "\n}\n";
}

/// Saves a GPT-2 as transformers does: model.safetensors, then config.json. Each file is replaced whole or not at all; other files of the
/// folder, such as those of a tokenizer, stay. Weights are written in F32.
///
/// @error as make_model_folder, save_weights and io::write_file
template <class Session>
result<void> save_gpt2(const std::string& path, Session& session, const model::gpt& size, const io::file_calls& calls = {}) {
  if (auto r = make_model_folder(path); !r) return r;
  if (auto r =
          save_weights(path + "/" + std::string(io::detail::weights_name), session, model::gpt2_names, model::gpt2_names.prefix, calls);
      !r)
    return r;
  return io::write_file(path + "/config.json", gpt2_config_text(size), calls);
}

}  // namespace isotope::interop
