#pragma once
/// A model as Hugging Face keeps it: a folder with config.json and either model.safetensors or model.safetensors.index.json, which names
/// the file (the shard) of every tensor. Opening reads the configuration and the headers; tensors are read on demand.
/// Source: huggingface/transformers, PreTrainedModel.save_pretrained; formats of the files: io/safetensors_index.hpp, io/json.hpp.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/json.hpp>
#include <isotope/io/json_fields.hpp>
#include <isotope/io/safetensors_file.hpp>

namespace isotope::io {

/// A `model_type` of config.json and what people call it.
struct model_family {
  std::string_view type, name;
};
/// The families whose folders are understood. Which of them can be computed is for the headers of interop to say.
inline constexpr std::array<model_family, 5> model_families = {
    {{"gpt2", "GPT-2"}, {"bert", "BERT"}, {"llama", "Llama"}, {"qwen2", "Qwen 2"}, {"qwen3", "Qwen 3"}}};

class model_folder {
 public:
  std::string path;
  json config;  // an object
  model_family family;

  std::string config_path() const { return path + "/config.json"; }
  std::size_t size() const { return places_.size(); }
  /// The k-th tensor by name.
  const tensor_entry& tensor(std::size_t k) const { return files_[places_[k].file].tensors[places_[k].tensor]; }
  /// The file of the k-th tensor.
  const safetensors_file& file_of(std::size_t k) const { return files_[places_[k].file]; }
  /// The index of a tensor, or `size()` if there is none of this name.
  std::size_t find(std::string_view name) const {
    std::size_t low = 0, high = size();
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (tensor(middle).name < name) low = middle + 1;
      else high = middle;
    }
    return low < size() && tensor(low).name == name ? low : size();
  }

  /// Takes over the files. @error bad_format: two files hold a tensor of one name
  result<void> adopt(std::vector<safetensors_file> files) {
    files_ = std::move(files);
    places_.clear();
    for (std::size_t f = 0; f < files_.size(); ++f)
      for (std::size_t t = 0; t < files_[f].tensors.size(); ++t) places_.push_back({f, t});
    const auto name = [&](const place& p) -> const std::string& { return files_[p.file].tensors[p.tensor].name; };
    std::sort(places_.begin(), places_.end(), [&](const place& a, const place& b) { return name(a) < name(b); });
    const auto twice =
        std::adjacent_find(places_.begin(), places_.end(), [&](const place& a, const place& b) { return name(a) == name(b); });
    if (twice == places_.end()) return {};
    return fail(errc::bad_format,
                "the tensor '" + name(*twice).substr(0, 120) + "' is in '" + files_[twice->file].source.where() + "', too",
                files_[(twice + 1)->file].source.where(), "fetch the folder again");
  }

 private:
  struct place {
    std::size_t file = 0, tensor = 0;
  };
  std::vector<safetensors_file> files_;
  std::vector<place> places_;  // by name
};

namespace detail {

inline constexpr std::string_view weights_name = "model.safetensors", index_name = "model.safetensors.index.json";
inline constexpr std::uint64_t most_config_bytes = 1 << 20, most_index_bytes = 16 << 20;
inline constexpr std::size_t most_shards = 1000;  // each is kept open

/// A name out of a file for a message: of a hostile one, the beginning.
inline std::string shown(std::string_view name) { return std::string(name.substr(0, 120)) + (name.size() > 120 ? "..." : ""); }

enum class file_kind : std::uint8_t { none, regular, folder, other };
inline file_kind kind_of_file(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return file_kind::none;
  return S_ISREG(status.st_mode) ? file_kind::regular : S_ISDIR(status.st_mode) ? file_kind::folder : file_kind::other;
}

/// Reads a JSON object or array from a file. Anything but a regular file is refused before it is opened, since opening a pipe may wait for ever.
/// @error not_found, unreadable; bad_format: too long, not JSON, of another kind
inline result<json> read_json(const std::string& path, std::uint64_t most_bytes, json::kind wanted) {
  const file_kind kind = kind_of_file(path);
  if (kind != file_kind::regular && kind != file_kind::none)
    return fail(errc::unreadable, "is not a regular file", path, "fetch the folder again");
  const auto source = byte_source::open(path);
  if (!source) return source.error();
  if (source->size() > most_bytes)
    return fail(errc::bad_format, "has " + std::to_string(source->size()) + " bytes, more than " + std::to_string(most_bytes), path,
                "fetch the folder again");
  std::string text(source->size(), '\0');
  if (auto r = source->read(0, std::as_writable_bytes(std::span(text))); !r) return std::move(r).error();
  auto root = io::parse_json(text, path);
  if (root && root->is != wanted)
    return fail(errc::bad_format, "is " + std::string(name_of(root->is)) + ", not " + std::string(name_of(wanted)), path,
                "fetch the folder again");
  return root;
}
inline result<json> read_object(const std::string& path, std::uint64_t most_bytes) {
  return read_json(path, most_bytes, json::kind::object);
}

inline result<safetensors_file> open_shard(const std::string& path) {
  if (kind_of_file(path) == file_kind::other) return fail(errc::unreadable, "is not a regular file", path, "fetch the folder again");
  return open_safetensors(path);
}

/// Whether a name of a shard is that of a file in the same folder.
inline bool plain_name(std::string_view name) {
  return name.ends_with(".safetensors") && name.size() <= 255 && !name.starts_with('.') &&
         std::none_of(name.begin(), name.end(), [](char c) { return c == '/' || c == '\\' || static_cast<unsigned char>(c) < ' '; });
}

/// Opens the shards of an index. Every tensor must be in the shard that the index names, and in no other.
/// @error not_found: a shard is missing; bad_format: a name of a shard, a tensor in another shard or in none
inline result<std::vector<safetensors_file>> open_shards(const std::string& folder) {
  const std::string path = folder + "/" + std::string(index_name);
  auto index = read_object(path, most_index_bytes);
  if (!index) return std::move(index).error();
  const json* map = index->find("weight_map");
  if (map == nullptr || map->is != json::kind::object)
    return fail(errc::bad_format, "has no object 'weight_map'", path, "fetch the folder again");
  std::vector<std::string> names;
  for (const json_member& m : map->members) {
    const std::string where = path + ":" + std::to_string(m.value.line);
    if (m.value.is != json::kind::string || !plain_name(m.value.text))
      return fail(errc::bad_format,
                  json_fields::text_of(m.value) + " of '" + shown(m.key) + "' is not the name of a safetensors file in this folder", where,
                  "fetch the folder again");
    const auto at = std::lower_bound(names.begin(), names.end(), m.value.text);
    if (at == names.end() || *at != m.value.text) names.insert(at, m.value.text);
    if (names.size() > most_shards)
      return fail(errc::bad_format, "names more than " + std::to_string(most_shards) + " files", where, "save the model in fewer files");
  }
  std::vector<safetensors_file> files;
  for (const std::string& name : names) {
    auto file = open_shard(folder + "/" + name);
    if (!file && file.error().code == errc::not_found)
      return fail(errc::not_found, "names '" + name + "', which is not there", path, "fetch the missing file");
    if (!file) return std::move(file).error();
    files.push_back(*std::move(file));
  }
  struct expected {
    std::string_view tensor, shard;
    bool found = false;
  };
  std::vector<expected> all;
  for (const json_member& m : map->members) all.push_back({m.key, m.value.text});
  const auto before = [](const expected& e, std::string_view name) { return e.tensor < name; };
  std::sort(all.begin(), all.end(), [&](const expected& a, const expected& b) { return before(a, b.tensor); });
  for (std::size_t f = 0; f < files.size(); ++f)
    for (const tensor_entry& t : files[f].tensors) {
      const auto at = std::lower_bound(all.begin(), all.end(), t.name, before);
      const bool named = at != all.end() && at->tensor == t.name;
      if (!named || at->shard != names[f])
        return fail(errc::bad_format,
                    "has the tensor '" + shown(t.name) + "', which the index " +
                        (named ? "expects in '" + std::string(at->shard) + "'" : "does not name"),
                    files[f].source.where(), "fetch the folder again");
      at->found = true;
    }
  for (const expected& e : all)
    if (!e.found)
      return fail(errc::bad_format, "lacks the tensor '" + shown(e.tensor) + "', which the index expects there",
                  folder + "/" + std::string(e.shard), "fetch the folder again");
  return files;
}

}  // namespace detail

/// Opens a folder.
///
/// @error not_found: the folder or one of its files is missing; unreadable; truncated or bad_format: a file is damaged, or the shards
/// disagree with their index; invalid_model: a `model_type` that is not in `model_families`. Each names the file and what is wrong in it.
inline result<model_folder> open_model(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (const auto kind = detail::kind_of_file(path); kind != detail::file_kind::folder)
    return fail(kind == detail::file_kind::none ? errc::not_found : errc::unreadable,
                kind == detail::file_kind::none ? "no such folder" : "is not a folder", path, "name the folder that holds config.json");
  model_folder folder;
  folder.path = std::move(path);
  auto config = detail::read_object(folder.config_path(), detail::most_config_bytes);
  if (!config) return std::move(config).error();
  folder.config = *std::move(config);

  json_fields fields(folder.config, folder.config_path());
  const std::string type = fields.text("model_type", {});
  if (auto r = fields.status(); !r) return std::move(r).error();
  const auto family = std::find_if(model_families.begin(), model_families.end(), [&](const model_family& f) { return f.type == type; });
  if (family == model_families.end()) {
    std::string known;
    for (const model_family& f : model_families) known += (known.empty() ? "" : ", ") + std::string(f.type);
    fields.refuse("model_type", type.empty() ? "is missing" : "is " + json_string(type) + ", a model that isotope does not know",
                  "the known ones are " + known, errc::invalid_model);
    return fields.status().error();
  }
  folder.family = *family;

  const std::string whole = folder.path + "/" + std::string(detail::weights_name);
  std::vector<safetensors_file> files;
  if (detail::kind_of_file(whole) != detail::file_kind::none) {
    auto file = detail::open_shard(whole);
    if (!file) return std::move(file).error();
    files.push_back(*std::move(file));
  } else if (detail::kind_of_file(folder.path + "/" + std::string(detail::index_name)) != detail::file_kind::none) {
    auto shards = detail::open_shards(folder.path);
    if (!shards) return std::move(shards).error();
    files = *std::move(shards);
  } else {
    const bool pickled = detail::kind_of_file(folder.path + "/pytorch_model.bin") != detail::file_kind::none ||
                         detail::kind_of_file(folder.path + "/pytorch_model.bin.index.json") != detail::file_kind::none;
    return fail(errc::not_found,
                "has neither " + std::string(detail::weights_name) + " nor " + std::string(detail::index_name) +
                    (pickled ? ", only pytorch_model.bin, which is not read" : ""),
                folder.path, pickled ? "save the model with safe_serialization=True" : "fetch the folder again");
  }
  if (auto r = folder.adopt(std::move(files)); !r) return std::move(r).error();
  return folder;
}

}  // namespace isotope::io
