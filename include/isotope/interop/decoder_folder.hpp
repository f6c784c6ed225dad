#pragma once
/// Decoders as folders of Hugging Face: the configuration of any family that generators can run, and its weights.
#include <charconv>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <isotope/interop/gpt2_folder.hpp>
#include <isotope/interop/llama_folder.hpp>
#include <isotope/interop/lora_folder.hpp>

namespace isotope::interop {

/// The configuration of a decoder. For each there are `inference_size`, the sizes of its model as generators run it, and `match_decoder`, which matches its
/// tensors.
using decoder_config = std::variant<gpt2_config, llama_config>;

/// The sizes of a decoder.
using decoder_size = std::variant<model::gpt, model::llama>;
/// Calls f(names, prefix) with the names under which transformers stores the tensors of a decoder.
template <class F> auto with_stored_names(const decoder_size& size, F&& f) {
  if (const auto* g = std::get_if<model::llama>(&size)) {
    const model::llama_names names(*g);
    return f(names.to_write(), std::string_view());
  }
  return f(model::gpt2_names, model::gpt2_names.prefix);
}

inline model::gpt inference_size(const gpt2_config& config) {
  model::gpt size = config.size;
  size.dropout = 0;
  return size;
}
inline model::llama inference_size(const llama_config& config) { return config.size; }
inline result<weight_match> match_decoder(const io::model_folder& folder, const gpt2_config& config, std::span<const slot> slots) {
  return match_gpt2(folder, config, slots);
}
inline result<weight_match> match_decoder(const io::model_folder& folder, const llama_config& config, std::span<const slot> slots) {
  return match_llama(folder, config, slots);
}

/// Reads the configuration of a folder.
/// @error invalid_model: the family is no decoder that isotope computes; as the family's own reader
inline result<decoder_config> read_decoder_config(const io::model_folder& folder) {
  const auto any = [](auto read) -> result<decoder_config> {
    if (!read) return std::move(read).error();
    return decoder_config(*std::move(read));
  };
  const std::string_view type = folder.family.type;
  if (type == "gpt2") return any(read_gpt2_config(folder));
  if (type == "llama" || type == "qwen2" || type == "qwen3") return any(read_llama_config(folder));
  return fail(
      errc::invalid_model,
      std::string(folder.family.name) + " (model_type '" + std::string(folder.family.type) + "') is no decoder that isotope computes",
      folder.config_path(), "give the folder of a GPT-2, a Llama or a Qwen");
}

/// The ids that end a text: `eos_token_id` of generation_config.json, else of config.json, a number or a list; none where neither has it.
/// @error bad_format: anything else; as read_object
inline result<std::vector<std::int32_t>> end_tokens(const io::model_folder& folder) {
  const std::string path = folder.path + "/generation_config.json";
  io::json generation;
  if (io::detail::kind_of_file(path) != io::detail::file_kind::none) {
    auto read = io::detail::read_object(path, io::detail::most_config_bytes);
    if (!read) return std::move(read).error();
    generation = *std::move(read);
  }
  constexpr std::string_view key = "eos_token_id";
  const auto present = [&](const io::json& object) {
    const io::json* v = object.find(key);
    return v != nullptr && v->is != io::json::kind::null ? v : nullptr;
  };
  const io::json *const first = present(generation), *const v = first != nullptr ? first : present(folder.config);
  std::vector<std::int32_t> ends;
  if (v == nullptr) return ends;
  for (const io::json& item : v->is == io::json::kind::array ? std::span<const io::json>(v->items) : std::span(v, 1)) {
    std::int32_t id = -1;
    const auto [end, error] = std::from_chars(item.text.data(), item.text.data() + item.text.size(), id);
    if (item.is != io::json::kind::number || error != std::errc() || end != item.text.data() + item.text.size() || id < 0)
      return fail(errc::bad_format, "is " + io::json_fields::text_of(item) + ", not the id of a token",
                  (first != nullptr ? path : folder.config_path()) + ":" + std::to_string(item.line) + ": " + std::string(key),
                  "give a whole number of 0 or more, or a list of them");
    ends.push_back(id);
  }
  return ends;
}

/// Copies the weights of a folder into a session or a generator, with adapters added to them if there are any.
/// @error as the family's match, `accept`, matched_lora::match and `load_weights`
template <class Session>
result<void> load_decoder(Session& to, const io::model_folder& folder, const decoder_config& config,
                          const lora_folder* adapters = nullptr) {
  const auto match = std::visit([&](const auto& c) { return match_decoder(folder, c, to.parameters()); }, config);
  if (!match) return match.error();
  if (auto r = accept(folder, *match, false); !r) return r;
  if (adapters == nullptr) return load_weights(to, folder, *match);
  const auto added = matched_lora::match(*adapters, folder, *match);
  if (!added) return added.error();
  return load_weights(to, folder, *match,
                      [&](std::size_t k, const weight_source& s, std::span<float> values) { return added->add(k, s, values); });
}

}  // namespace isotope::interop
