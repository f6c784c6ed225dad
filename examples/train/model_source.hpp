#pragma once
/// --from, --adapters, --save-hf and --save-adapters: the model begins as one in a folder of Hugging Face, and ends in one.
#include "../support/trained_model.hpp"
#include "settings.hpp"

#include <isotope/config/canonical.hpp>
#include <isotope/config/load.hpp>
#include <isotope/core/error.hpp>
#include <isotope/interop/adapters.hpp>
#include <isotope/interop/decoder_folder.hpp>
#include <isotope/interop/gpt2_folder.hpp>
#include <isotope/interop/load_adapters.hpp>
#include <isotope/interop/tuned_folder.hpp>
#include <isotope/io/json_text.hpp>
#include <isotope/io/tokenizer_file.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace train_program {

/// The folders that a run begins from.
struct model_source {
  isotope::io::model_folder folder;
  isotope::interop::decoder_config config;
  std::optional<isotope::interop::lora_folder> adapters;

  /// Null: the model is no GPT-2.
  const isotope::interop::gpt2_config* gpt2() const { return std::get_if<isotope::interop::gpt2_config>(&config); }
  std::int64_t vocab() const {
    return std::visit([](const auto& c) { return std::int64_t(c.size.vocab); }, config);
  }
  bool has_tokenizer() const {
    return std::any_of(names_of_tokenizers.begin(), names_of_tokenizers.end(),
                       [&](std::string_view name) { return isotope::io::detail::is_there(folder.path + "/" + std::string(name)); });
  }

 private:
  static constexpr std::array<std::string_view, 2> names_of_tokenizers = {"tokenizer.json", "merges.txt"};  // a decoder's is byte-level BPE
};

/// @error as io::open_model, interop::read_decoder_config and interop::open_lora
inline isotope::result<model_source> open_source(const folder_settings& s) {
  auto folder = isotope::io::open_model(s.from);
  if (!folder) return std::move(folder).error();
  auto config = isotope::interop::read_decoder_config(*folder);
  if (!config) return std::move(config).error();
  model_source out{*std::move(folder), *std::move(config), {}};
  if (s.adapters.empty()) return out;
  auto adapters = isotope::interop::open_lora(s.adapters);
  if (!adapters) return std::move(adapters).error();
  out.adapters = *std::move(adapters);
  return out;
}

/// The layers of a folder's adapters, as --lora-targets calls them.
inline std::string_view targets_of(const isotope::interop::lora_folder& adapters) {
  return isotope::interop::lora_targets_of(adapters).size() == isotope::interop::lora_all.size() ? "all" : "attention";
}

/// The settings that follow from a folder: sizes, and a rate for weights that are trained already, or for adapters (as Hu et al. 2021,
/// table 11). A text is encoded by the folder's tokenizer, or is token ids where it has none, unless another unit was asked for.
inline isotope::config::layer layer_of(const model_source& from, const isotope::config::loaded<settings>& asked) {
  isotope::config::layer out;
  const auto add = [&](std::string_view key, std::string value) {
    out.push_back({std::string(key), std::move(value), isotope::config::written_as::raw, "folder " + from.folder.path});
  };
  std::visit(
      [&](const auto& c) {
        add("model.layers", std::to_string(c.size.layers));
        add("model.heads", std::to_string(c.size.heads));
        add("model.width", std::to_string(c.size.width));
        add("model.context", std::to_string(c.size.context));
        add("training.length", std::to_string(std::min(c.size.context, 1024)));
      },
      from.config);
  if (const auto* c = from.gpt2(); c != nullptr && c->one_dropout) add("model.dropout", isotope::io::number_text(c->size.dropout));
  add("training.batch", "4");
  if (from.adapters) {
    for (const auto& [key, value] : {std::pair{"training.lora", std::to_string(from.adapters->rank)},
                                     {"training.lora_alpha", isotope::io::number_text(from.adapters->alpha)},
                                     {"training.lora_targets", std::string(targets_of(*from.adapters))}})
      out.push_back({key, value, isotope::config::written_as::raw, "folder " + from.adapters->path});
  }
  const bool adapts = asked.value.training.lora > 0 || from.adapters;
  add("training.learning_rate", adapts ? "2e-4" : "5e-5");
  add("training.min_learning_rate", adapts ? "2e-5" : "5e-6");
  for (const isotope::config::setting& s : asked.settings) {
    if (s.key != "input.data") continue;
    const bool free = s.origin == "default", text = free && from.has_tokenizer();
    if (free) add("input.data", text ? "text" : "tokens");
    if (!text && (free || s.value == "\"tokens\"")) add("input.vocab", std::to_string(from.vocab()));
  }
  return out;
}

/// Refuses settings that contradict the folder. @error invalid_argument, with the layer that set the value
inline isotope::result<void> check_source(const model_source& from, const isotope::config::loaded<settings>& loaded) {
  const support::model_settings& m = loaded.value.model;
  isotope::failure f;
  const auto refuse = [&](std::string_view key, std::string what, std::string fix) {
    if (!f.what.empty()) return;
    f = isotope::fail(isotope::errc::invalid_argument, std::move(what), std::string(key), std::move(fix));
    for (const isotope::config::setting& s : loaded.settings)
      if (s.key == key) f.where = s.origin + ": " + s.key;
  };
  const auto same = [&](std::string_view key, std::int64_t is, std::int64_t wanted) {
    if (is != wanted)
      refuse(key, "is " + std::to_string(is) + ", the model in " + from.folder.path + " has " + std::to_string(wanted),
             "leave it out, or leave --from out");
  };
  std::visit(
      [&](const auto& c) {
        same("model.layers", m.layers, c.size.layers);
        same("model.heads", m.heads, c.size.heads);
        same("model.width", m.width, c.size.width);
        same("model.context", m.context, c.size.context);
      },
      from.config);
  if (from.adapters) {
    const training_settings& t = loaded.value.training;
    const isotope::interop::lora_folder& a = *from.adapters;
    const auto keep = [&](std::string_view key, bool equal, const std::string& is, const std::string& theirs) {
      if (!equal) refuse(key, "is " + is + ", that of the adapters in " + a.path + " " + theirs, "leave it out, or leave --adapters out");
    };
    keep("training.lora", t.lora == a.rank, std::to_string(t.lora), std::to_string(a.rank));
    keep("training.lora_alpha", t.lora_alpha == a.alpha, isotope::io::number_text(t.lora_alpha), isotope::io::number_text(a.alpha));
  }
  if (from.gpt2() == nullptr && m.dropout != 0)
    refuse("model.dropout",
           "is " + isotope::io::number_text(m.dropout) + ", and a " + std::string(from.folder.family.name) + " drops nothing",
           "leave it out");
  if (!f.what.empty()) return f;
  for (const isotope::config::setting& s : loaded.settings)
    if (s.key == "model.dropout" && from.gpt2() != nullptr && !from.gpt2()->one_dropout &&
        (s.origin == "default" || s.origin.starts_with("size ")))
      return isotope::fail(isotope::errc::invalid_argument, "embd_pdrop, attn_pdrop and resid_pdrop differ, isotope has one probability",
                           from.folder.config_path(), "give --dropout");
  return {};
}

/// The model of a run: of the folder it begins from, else a GPT of the settings.
inline support::trained_model model_of(const model_source* from, const settings& s, std::int64_t vocab) {
  const training_settings& t = s.training;
  const auto targets = t.lora_targets == "all" ? isotope::interop::lora_all : isotope::interop::lora_attention;
  support::trained_model model{
      isotope::model::gpt{s.model.layers, s.model.heads, s.model.width, int(vocab), s.model.context, s.model.dropout},
      {int(t.lora), t.lora_alpha, targets}};
  if (from != nullptr)
    if (const auto* c = std::get_if<isotope::interop::llama_config>(&from->config)) model.size = c->size;
  return model;
}

/// Says of what model a checkpoint holds the weights: the settings of a GPT, which isotope-generate reads; of others, which it refuses, all
/// that the plan depends on.
inline std::string identity_of(const support::trained_model& model, const settings& s) {
  std::string text = isotope::config::to_json(s.model);
  if (const auto* g = std::get_if<isotope::model::llama>(&model.size)) {
    text = "{\"decoder\":\"llama\"";
    const auto add = [&](std::string_view key, auto value) { text += ",\"" + std::string(key) + "\":" + isotope::io::number_text(value); };
    add("layers", g->layers), add("heads", g->heads), add("kv_heads", g->kv_heads), add("width", g->width), add("head_size", g->head_size);
    add("hidden", g->hidden), add("vocab", g->vocab), add("context", g->context), add("epsilon", g->epsilon), add("theta", g->theta);
    add("rope_context", g->scaling.context), add("rope_factor", g->scaling.factor), add("rope_low", g->scaling.low);
    add("rope_high", g->scaling.high), add("qkv_bias", int(g->qkv_bias)), add("qk_norm", int(g->qk_norm)), add("tied", int(g->tied));
    text += '}';
  }
  if (!model.adapted()) return text;
  return "{\"lora\":{\"rank\":" + std::to_string(model.adapters.rank) + ",\"alpha\":" + isotope::io::number_text(model.adapters.alpha) +
         ",\"targets\":" + isotope::io::json_string(s.training.lora_targets) + "},\"of\":" + text + "}";
}

/// Loads the weights, and the adapters if there are any, into a session that was initialised. Returns a line that says what was loaded.
/// @error as interop::match_decoder, accept, load_weights and load_adapters
template <class Session>
isotope::result<std::string> load_source(Session& session, const model_source& from, const support::trained_model& model, bool partial) {
  isotope::interop::without_adapters to(session, model.adapters);
  const auto match =
      std::visit([&](const auto& c) { return isotope::interop::match_decoder(from.folder, c, to.parameters()); }, from.config);
  if (!match) return match.error();
  if (auto r = isotope::interop::accept(from.folder, *match, partial); !r) return std::move(r).error();
  if (auto r = isotope::interop::load_weights(to, from.folder, *match); !r) return std::move(r).error();
  const std::string rest = text_of(*match);
  std::string line = "loaded " + std::to_string(match->complete) + " of " + std::to_string(to.parameters().size()) + " parameters from " +
                     from.folder.path + (rest.empty() ? "" : "; " + rest);
  if (!from.adapters) return line;
  const auto read = isotope::interop::load_adapters(session, *from.adapters, model.adapters, model.size, partial);
  if (!read) return read.error();
  return line + "\nloaded " + std::to_string(*read) + " tensors of adapters from " + from.adapters->path;
}

/// Checks at the start that the folders for the model and its adapters can be made, and that nothing is lost there.
/// @error as interop::make_folder_for
inline isotope::result<void> make_model_folders(const folder_settings& s) {
  using namespace isotope::interop;
  if (!s.save_hf.empty())
    if (auto r = make_new_model_folder(s.save_hf); !r) return r;
  constexpr std::array<std::string_view, 2> names = {adapter_weights_name, adapter_config_name};
  return s.save_adapters.empty() ? isotope::result<void>() : make_folder_for(s.save_adapters, names);
}

/// Saves the last weights, with the adapters applied. Returns a line that says so, or nothing where they are not wanted.
/// @error as interop::save_tuned and save_gpt2
template <class Session>
isotope::result<std::string> save_model(Session& session, const model_source* from, const support::trained_model& model,
                                        const folder_settings& s) {
  using namespace isotope;
  if (s.save_hf.empty()) return std::string();
  interop::without_adapters merged(session, model.adapters);
  auto r = from != nullptr ? interop::save_tuned(s.save_hf, merged, model.size, from->folder)
                           : interop::save_gpt2(s.save_hf, merged, *std::get_if<isotope::model::gpt>(&model.size));
  if (!r) return std::move(r).error();
  return "saved " + s.save_hf + " for transformers\n";
}
/// Saves the adapters alone, of a session or gathered ones. Returns a line that says so, or nothing where they are not wanted.
/// @error as interop::save_adapters
template <class Session>
isotope::result<std::string> save_adapters(Session& session, const support::trained_model& model, const folder_settings& s) {
  if (s.save_adapters.empty()) return std::string();
  if (auto r = isotope::interop::save_adapters(s.save_adapters, session, model.adapters, model.size, s.from); !r)
    return std::move(r).error();
  return "saved " + s.save_adapters + " for peft\n";
}

}  // namespace train_program
