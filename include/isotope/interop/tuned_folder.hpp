#pragma once
/// Saves a decoder that was trained from a folder of Hugging Face: the folder's configuration and tokenizer, with other weights.
#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/interop/decoder_folder.hpp>
#include <isotope/interop/save_weights.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/json.hpp>
#include <isotope/io/json_text.hpp>
#include <isotope/io/model_folder.hpp>

namespace isotope::interop {

/// Files beside the weights that a trained model keeps: its tokenizer, and how texts are generated.
inline constexpr std::array<std::string_view, 9> kept_files = {{"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                                                                "added_tokens.json", "vocab.json", "merges.txt", "vocab.txt",
                                                                "chat_template.jinja", "generation_config.json"}};

/// Makes a folder for files of these names. @error write_failed: it cannot be made; invalid_argument: it has one of the files, which would
/// be lost
inline result<void> make_folder_for(const std::string& path, std::span<const std::string_view> names) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error || !std::filesystem::is_directory(path, error))
    return fail(errc::write_failed, "cannot make the folder: " + (error ? error.message() : "a file has its name"), path,
                "check the path and its permissions");
  for (const std::string_view name : names)
    if (io::detail::kind_of_file(path + "/" + std::string(name)) != io::detail::file_kind::none)
      return fail(errc::invalid_argument, "has a file '" + std::string(name) + "', which would be replaced", path,
                  "name another folder, or remove the file");
  return {};
}
/// Makes the folder in which a model is to be saved. @error as make_folder_for
inline result<void> make_new_model_folder(const std::string& path) {
  std::vector<std::string_view> names = {"config.json", io::detail::weights_name, io::detail::index_name};
  names.insert(names.end(), kept_files.begin(), kept_files.end());
  return make_folder_for(path, names);
}

namespace detail {

inline void append_json(const io::json& v, const std::string& indent, std::string& out) {
  const auto list = [&](const auto& all, char first, char last, const auto& put) {
    out += first;
    for (std::size_t k = 0; k < all.size(); ++k) {
      out += (k == 0 ? "\n  " : ",\n  ") + indent;
      put(all[k]);
    }
    if (!all.empty()) out += "\n" + indent;
    out += last;
  };
  switch (v.is) {
    case io::json::kind::null: out += "null"; break;
    case io::json::kind::boolean: out += v.boolean ? "true" : "false"; break;
    case io::json::kind::number: out += v.text; break;
    case io::json::kind::string: out += io::json_string(v.text); break;
    case io::json::kind::array: list(v.items, '[', ']', [&](const io::json& item) { append_json(item, indent + "  ", out); }); break;
    case io::json::kind::object:
      list(v.members, '{', '}', [&](const io::json_member& m) {
        out += io::json_string(m.key) + ": ";
        append_json(m.value, indent + "  ", out);
      });
      break;
  }
}
inline io::json json_text_value(std::string_view text) {
  io::json v;
  v.is = io::json::kind::string;
  v.text = std::string(text);
  return v;
}

}  // namespace detail

/// The text of the config.json of a folder, for weights that are stored in F32 and include the head. Other fields stay as they are.
inline std::string tuned_config_text(const io::model_folder& source) {
  io::json config = source.config;
  const auto set = [&](std::string_view key, io::json value) {
    for (io::json_member& m : config.members)
      if (m.key == key) return void(m.value = std::move(value));
    config.members.push_back({std::string(key), std::move(value)});
  };
  const bool newer = config.find("dtype") != nullptr;
  set(newer ? "dtype" : "torch_dtype", detail::json_text_value("float32"));
  if (newer && config.find("torch_dtype") != nullptr) set("torch_dtype", detail::json_text_value("float32"));
  const std::string_view type = source.family.type;
  io::json heads;
  heads.is = io::json::kind::array;
  heads.items.push_back(detail::json_text_value(type == "gpt2"    ? "GPT2LMHeadModel"
                                                : type == "qwen2" ? "Qwen2ForCausalLM"
                                                : type == "qwen3" ? "Qwen3ForCausalLM"
                                                                  : "LlamaForCausalLM"));
  set("architectures", std::move(heads));
  if (type == "gpt2" && config.find("tie_word_embeddings") != nullptr) {  // an untied head is accepted only as a copy, and is not saved
    io::json tied;
    tied.is = io::json::kind::boolean;
    tied.boolean = true;
    set("tie_word_embeddings", std::move(tied));
  }
  std::string out;
  detail::append_json(config, "", out);
  return out + "\n";
}

/// Writes what a saved model has beside its weights: the files of the tokenizer, then config.json. @error as io::read_file and io::write_file
inline result<void> save_companions(const std::string& path, const io::model_folder& source, const io::file_calls& calls = {}) {
  for (const std::string_view name : kept_files) {
    const std::string from = source.path + "/" + std::string(name);
    if (io::detail::kind_of_file(from) != io::detail::file_kind::regular) continue;
    auto bytes = io::read_file(from);
    if (!bytes) return std::move(bytes).error();
    if (auto r = io::write_file(path + "/" + std::string(name), bytes->text(), calls); !r) return r;
  }
  return io::write_file(path + "/config.json", tuned_config_text(source), calls);
}

/// Saves a decoder whose sizes are those of a folder: model.safetensors, the files of the tokenizer, then config.json, so that readers find
/// a model only when it is whole. Each file is written whole or not at all.
/// @error as save_weights, io::read_file and io::write_file
template <class Session>
result<void> save_tuned(const std::string& path, Session& session, const decoder_size& size, const io::model_folder& source,
                        const io::file_calls& calls = {}) {
  const auto weights = [&](const model::stored_names& names, std::string_view prefix) {
    return save_weights(path + "/" + std::string(io::detail::weights_name), session, names, prefix, calls);
  };
  if (auto r = with_stored_names(size, weights); !r) return r;
  return save_companions(path, source, calls);
}

}  // namespace isotope::interop
