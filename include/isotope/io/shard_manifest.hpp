#pragma once
/// The manifest of a folder of token shards: which files there are, how many tokens each has, its hash, and whether it is for training or
/// for validation. A shard is a file of token ids, little-endian, of 16 bits if all ids of the vocabulary fit and of 32 bits otherwise.
#include <sys/stat.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/byte_source.hpp>
#include <isotope/io/hash.hpp>
#include <isotope/io/json.hpp>
#include <isotope/io/json_fields.hpp>
#include <isotope/io/json_text.hpp>

namespace isotope::io {

inline constexpr std::string_view manifest_name = "manifest.json";
inline constexpr std::string_view manifest_format = "isotope token shards";
inline constexpr int manifest_version = 1;
inline constexpr std::size_t most_token_shards = 1000;  // each is kept open
inline constexpr std::int32_t most_shard_tokens = 1 << 30;

/// The name of the k-th shard's file. Manifests name no others, so that no file is named twice and none lies outside the folder.
inline std::string shard_name(std::size_t k) {
  std::string digits = std::to_string(k);
  if (digits.size() < 5) digits.insert(0, 5 - digits.size(), '0');
  return "shard-" + digits + ".bin";
}

struct token_shard {
  std::int64_t tokens = 0;
  std::uint64_t hash = 0;  // XXH3 of the file's bytes
  bool validation = false;
  friend bool operator==(const token_shard&, const token_shard&) = default;
};

struct shard_manifest {
  std::int32_t vocabulary = 0;
  std::int32_t end_of_text = 0;      // the id that ends every document
  std::uint64_t tokenizer_hash = 0;  // XXH3 of the tokenizer's files
  std::uint64_t seed = 0;            // that chose the shards for validation
  std::vector<token_shard> shards;   // in the order of the text
  friend bool operator==(const shard_manifest&, const shard_manifest&) = default;

  std::size_t bytes_per_token() const { return vocabulary <= 65536 ? 2 : 4; }
  /// The tokens of one split.
  std::int64_t tokens(bool validation) const {
    std::int64_t sum = 0;
    for (const token_shard& s : shards) sum += s.validation == validation ? s.tokens : 0;
    return sum;
  }
  std::size_t count(bool validation) const {
    std::size_t n = 0;
    for (const token_shard& s : shards) n += s.validation == validation ? 1 : 0;
    return n;
  }

  std::string to_json() const {
    const auto text = [](std::string_view key, std::string_view value) { return json_string(key) + ": " + json_string(value); };
    const auto number = [](std::string_view key, auto value) { return json_string(key) + ": " + std::to_string(value); };
    std::string s = "{\n  " + text("format", manifest_format) + ",\n  " + number("version", manifest_version) + ",\n  " +
                    number("vocabulary", vocabulary) + ",\n  " + number("bytes_per_token", bytes_per_token()) + ",\n  " +
                    number("end_of_text", end_of_text) + ",\n  " + text("tokenizer", detail::hash_digits(tokenizer_hash)) + ",\n  " +
                    number("seed", seed) + ",\n  \"shards\": [";
    for (std::size_t k = 0; k < shards.size(); ++k)
      s += (k == 0 ? "\n    {" : ",\n    {") + text("file", shard_name(k)) + ", " + number("tokens", shards[k].tokens) + ", " +
           text("hash", detail::hash_digits(shards[k].hash)) + ", " + text("split", shards[k].validation ? "validation" : "training") + "}";
    return s + "\n  ]\n}\n";
  }
};

namespace detail {

inline constexpr const char* manifest_fix = "make the shards again with isotope-tokenize shards";
inline constexpr std::uint64_t most_manifest_bytes = 1 << 20;

/// Opens a regular file. Anything else is refused before it is opened, since opening a pipe may wait for ever.
/// @error as byte_source::open; unreadable: not a regular file
inline result<byte_source> open_regular(const std::string& path) {
  if (struct stat status{}; ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    return fail(errc::unreadable, "is not a regular file", path, manifest_fix);
  return byte_source::open(path);
}

/// A whole number of 64 bits without sign, which json_fields does not read.
inline std::uint64_t whole_64(json_fields& fields, std::string_view key) {
  const json* v = fields.find(key);
  std::uint64_t n = 0;
  if (v == nullptr) return fields.refuse(key, "is missing", manifest_fix), n;
  const auto [end, error] = std::from_chars(v->text.data(), v->text.data() + v->text.size(), n);
  if (v->is != json::kind::number || error != std::errc() || end != v->text.data() + v->text.size())
    fields.refuse(key, "is " + json_fields::text_of(*v), "give a whole number");
  return n;
}

/// A hash of 16 hexadecimal digits.
inline std::uint64_t hash_in(json_fields& fields, std::string_view key) {
  const std::string digits = fields.text(key, "");
  std::uint64_t hash = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), hash, 16);
  if (hash_digits(hash) != digits) fields.refuse(key, "is not a hash of 16 hexadecimal digits", manifest_fix);
  return hash;
}

inline result<token_shard> shard_in(const json& value, std::size_t k, const std::string& where) {
  if (value.is != json::kind::object)
    return fail(errc::bad_format, "a shard is " + std::string(name_of(value.is)), where + ":" + std::to_string(value.line), manifest_fix);
  json_fields fields(value, where);
  token_shard s;
  if (fields.text("file", "") != shard_name(k))
    fields.refuse("file", "is not '" + shard_name(k) + "', the name of shard " + std::to_string(k), manifest_fix);
  s.tokens = fields.whole("tokens", 1, most_shard_tokens);
  s.hash = hash_in(fields, "hash");
  const std::string split = fields.text("split", "");
  s.validation = split == "validation";
  if (!s.validation && split != "training") fields.refuse("split", "is neither training nor validation", manifest_fix);
  if (auto r = fields.status(); !r) return std::move(r).error();
  return s;
}

}  // namespace detail

/// Reads a manifest's text. `where` names it in failures.
///
/// @error bad_format with the line and the key; version_mismatch
inline result<shard_manifest> parse_manifest(std::string_view text, const std::string& where) {
  if (text.size() > detail::most_manifest_bytes)
    return fail(errc::bad_format, "has " + std::to_string(text.size()) + " bytes, more than " + std::to_string(detail::most_manifest_bytes),
                where, detail::manifest_fix);
  auto root = parse_json(text, where, 16 * most_token_shards);
  if (!root) return std::move(root).error();
  const json* format = root->find("format");
  if (format == nullptr || format->text != manifest_format)
    return fail(errc::bad_format, "is not the manifest of token shards", where, detail::manifest_fix);
  json_fields fields(*root, where);
  if (const std::int32_t version = fields.whole("version", 1, 1 << 30); fields.status().ok() && version != manifest_version)
    return fail(errc::version_mismatch,
                "the manifest has version " + std::to_string(version) + "; this program reads version " + std::to_string(manifest_version),
                where, "use the program that wrote it");
  shard_manifest m;
  m.vocabulary = fields.whole("vocabulary", 1, 1 << 30);
  const std::int32_t bytes = fields.whole("bytes_per_token", 2, 4);
  if (static_cast<std::size_t>(bytes) != m.bytes_per_token())
    fields.refuse("bytes_per_token", "is " + std::to_string(bytes) + ", ids of this vocabulary take " + std::to_string(m.bytes_per_token()),
                  detail::manifest_fix);
  m.end_of_text = fields.whole("end_of_text", 0, m.vocabulary - 1);
  m.tokenizer_hash = detail::hash_in(fields, "tokenizer");
  m.seed = detail::whole_64(fields, "seed");
  const json* shards = fields.find("shards");
  if (shards == nullptr || shards->is != json::kind::array || shards->items.empty() || shards->items.size() > most_token_shards)
    fields.refuse("shards", "is not a list of 1 to " + std::to_string(most_token_shards) + " shards", detail::manifest_fix);
  if (auto r = fields.status(); !r) return std::move(r).error();
  for (std::size_t k = 0; k < shards->items.size(); ++k) {
    auto s = detail::shard_in(shards->items[k], k, where);
    if (!s) return std::move(s).error();
    m.shards.push_back(*s);
  }
  return m;
}

/// Whether a folder has a manifest, be it readable or not.
inline bool has_manifest(const std::string& folder) {
  struct stat status{};
  return ::stat((folder + "/" + std::string(manifest_name)).c_str(), &status) == 0;
}

/// Reads the text of a folder's manifest. @error not_found: there is none; as detail::open_regular
inline result<std::string> read_manifest(const std::string& folder) {
  const std::string path = folder + "/" + std::string(manifest_name);
  auto file = detail::open_regular(path);
  if (!file && file.error().code == errc::not_found)
    return fail(errc::not_found, "has no " + std::string(manifest_name) + ", which is written last", folder,
                "name a folder that isotope-tokenize shards has completed");
  if (!file) return std::move(file).error();
  if (file->size() > detail::most_manifest_bytes)
    return fail(errc::bad_format,
                "has " + std::to_string(file->size()) + " bytes, more than " + std::to_string(detail::most_manifest_bytes), path,
                detail::manifest_fix);
  std::string text(file->size(), '\0');
  if (auto r = file->read(0, std::as_writable_bytes(std::span(text))); !r) return std::move(r).error();
  return text;
}

}  // namespace isotope::io
