#pragma once
/// --from and --save-hf: the model begins as one in a folder of Hugging Face, and ends in one.
#include "settings.hpp"

#include <isotope/config/load.hpp>
#include <isotope/core/error.hpp>
#include <isotope/interop/gpt2_folder.hpp>
#include <isotope/io/json_text.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace train_program {

/// The folder that a run begins from.
struct model_source {
  isotope::io::model_folder folder;
  isotope::interop::gpt2_config config;
};

/// @error as io::open_model and interop::read_gpt2_config
inline isotope::result<model_source> open_source(const std::string& path) {
  auto folder = isotope::io::open_model(path);
  if (!folder) return std::move(folder).error();
  auto config = isotope::interop::read_gpt2_config(*folder);
  if (!config) return std::move(config).error();
  return model_source{*std::move(folder), *config};
}

/// The settings that follow from a folder: sizes, and a rate for weights that are trained already. Text is token ids of the model's
/// tokenizer unless another unit was asked for.
inline isotope::config::layer layer_of(const model_source& from, const isotope::config::loaded<settings>& asked) {
  isotope::config::layer out;
  const auto add = [&](std::string_view key, std::string value) {
    out.push_back({std::string(key), std::move(value), isotope::config::written_as::raw, "folder " + from.folder.path});
  };
  const isotope::model::gpt& g = from.config.size;
  add("model.layers", std::to_string(g.layers));
  add("model.heads", std::to_string(g.heads));
  add("model.width", std::to_string(g.width));
  add("model.context", std::to_string(g.context));
  if (from.config.one_dropout) add("model.dropout", isotope::io::number_text(g.dropout));
  add("training.batch", "4");
  add("training.length", std::to_string(g.context));
  add("training.learning_rate", "5e-5");
  add("training.min_learning_rate", "5e-6");
  for (const isotope::config::setting& s : asked.settings) {
    const bool tokens = s.key == "input.data" && (s.origin == "default" || s.value == "\"tokens\"");
    if (tokens && s.origin == "default") add("input.data", "tokens");
    if (tokens) add("input.vocab", std::to_string(g.vocab));
  }
  return out;
}

/// Refuses settings that contradict the folder. @error invalid_argument, with the layer that set the value
inline isotope::result<void> check_source(const model_source& from, const isotope::config::loaded<settings>& loaded) {
  const isotope::model::gpt& g = from.config.size;
  const support::model_settings& m = loaded.value.model;
  isotope::failure f;
  const auto same = [&](std::string_view key, std::int64_t is, std::int64_t wanted) {
    if (is == wanted || !f.what.empty()) return;
    f = isotope::fail(isotope::errc::invalid_argument,
                      "is " + std::to_string(is) + ", the model in " + from.folder.path + " has " + std::to_string(wanted),
                      std::string(key), "leave it out, or leave --from out");
    for (const isotope::config::setting& s : loaded.settings)
      if (s.key == key) f.where = s.origin + ": " + s.key;
  };
  same("model.layers", m.layers, g.layers);
  same("model.heads", m.heads, g.heads);
  same("model.width", m.width, g.width);
  same("model.context", m.context, g.context);
  if (!f.what.empty()) return f;
  for (const isotope::config::setting& s : loaded.settings)
    if (s.key == "model.dropout" && !from.config.one_dropout && (s.origin == "default" || s.origin.starts_with("size ")))
      return isotope::fail(isotope::errc::invalid_argument, "embd_pdrop, attn_pdrop and resid_pdrop differ, isotope has one probability",
                           from.folder.config_path(), "give --dropout");
  return {};
}

/// Loads the weights into a session that was initialised. Returns a line that says what was loaded.
/// @error as interop::match_gpt2, accept and load_weights
template <class Session> isotope::result<std::string> load_source(Session& session, const model_source& from, bool partial) {
  auto match = isotope::interop::match_gpt2(from.folder, from.config, session.parameters());
  if (!match) return std::move(match).error();
  if (auto r = isotope::interop::accept(from.folder, *match, partial); !r) return std::move(r).error();
  if (auto r = isotope::interop::load_weights(session, from.folder, *match); !r) return std::move(r).error();
  const std::string rest = text_of(*match);
  return "loaded " + std::to_string(match->complete) + " of " + std::to_string(session.parameters().size()) + " parameters from " +
         from.folder.path + (rest.empty() ? "" : "; " + rest);
}

}  // namespace train_program
