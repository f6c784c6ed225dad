#pragma once
/// What token ids stand for: characters of a text, bytes, or numbers of another tokenizer.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/json.hpp>
#include <isotope/io/json_text.hpp>
#include <isotope/io/utf8.hpp>

namespace isotope::io {

enum class text_unit : std::uint8_t { characters, bytes, tokens };

constexpr std::string_view name_of(text_unit u) {
  switch (u) {
    case text_unit::characters: return "characters";
    case text_unit::bytes: return "bytes";
    case text_unit::tokens: return "tokens";
  }
  return "nothing";
}

/// Ids 0 .. size-1. For characters an id is the code point's rank among those of the training text, for bytes the byte; tokens are opaque.
class vocabulary {
 public:
  vocabulary() = default;
  static vocabulary of_bytes() { return {text_unit::bytes, 256, {}}; }
  static vocabulary of_tokens(std::int32_t size) { return {text_unit::tokens, size, {}}; }
  /// @param codes  code points in ascending order, each once
  static vocabulary of_characters(std::vector<std::uint32_t> codes) {
    const auto size = static_cast<std::int32_t>(codes.size());
    return {text_unit::characters, size, std::move(codes)};
  }

  text_unit unit() const { return unit_; }
  std::int32_t size() const { return size_; }
  friend bool operator==(const vocabulary&, const vocabulary&) = default;

  /// Returns the id of a code point, or -1 if the training text did not have it.
  std::int32_t id_of(std::uint32_t code) const {
    const auto at = std::lower_bound(codes_.begin(), codes_.end(), code);
    return at == codes_.end() || *at != code ? -1 : static_cast<std::int32_t>(at - codes_.begin());
  }

  /// Converts text to ids.
  ///
  /// @error bad_format with the byte offset: not UTF-8, a character outside the vocabulary; invalid_argument: opaque tokens
  result<std::vector<std::int32_t>> encode(std::string_view text, const std::string& where = {}) const {
    std::vector<std::int32_t> ids;
    if (unit_ == text_unit::tokens)
      return fail(errc::invalid_argument, "the vocabulary is token numbers of another tokenizer: text cannot be encoded", where,
                  "use its tokenizer");
    if (unit_ == text_unit::bytes) {
      for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
      return ids;
    }
    for (std::size_t at = 0; at < text.size();) {
      const auto [code, bytes] = decode_utf8(text, at);
      if (bytes == 0)
        return fail(errc::bad_format, "not UTF-8 at byte " + std::to_string(at), where, "convert the text to UTF-8, or use bytes as units");
      const std::int32_t id = id_of(code);
      if (id < 0)
        return fail(errc::bad_format,
                    "the character " + json_string(text.substr(at, bytes)) + " at byte " + std::to_string(at) + " is not among the " +
                        std::to_string(size_) + " of the training text",
                    where, "leave it out");
      ids.push_back(id);
      at += bytes;
    }
    return ids;
  }

  /// Appends an id's text; an opaque token gives its number and a blank. Ids outside the vocabulary add nothing.
  void decode(std::int32_t id, std::string& out) const {
    if (id < 0 || id >= size_) return;
    if (unit_ == text_unit::characters) append_utf8(out, codes_[static_cast<std::size_t>(id)]);
    else if (unit_ == text_unit::bytes) out += static_cast<char>(static_cast<unsigned char>(id));
    else out += std::to_string(id) + " ";
  }

  /// Canonical JSON: {"unit":"characters","size":3,"characters":"abc"}
  std::string to_json() const {
    std::string characters;
    for (const std::uint32_t code : codes_) append_utf8(characters, code);
    return "{\"unit\":" + json_string(name_of(unit_)) + ",\"size\":" + std::to_string(size_) +
           ",\"characters\":" + json_string(characters) + "}";
  }

  /// @error bad_format: anything that to_json does not write
  static result<vocabulary> from_json(std::string_view text, const std::string& where) {
    auto root = parse_json(text, where);
    if (!root) return std::move(root).error();
    const json *unit = root->find("unit"), *size = root->find("size"), *characters = root->find("characters");
    vocabulary v;
    if (unit != nullptr && size != nullptr && characters != nullptr) {
      if (unit->text == name_of(text_unit::bytes)) v = of_bytes();
      if (unit->text == name_of(text_unit::tokens)) {
        std::int32_t count = 0;
        std::from_chars(size->text.data(), size->text.data() + size->text.size(), count);
        v = of_tokens(count);
      }
      if (unit->text == name_of(text_unit::characters)) {
        std::vector<std::uint32_t> codes;
        for (std::size_t at = 0; at < characters->text.size();) {
          const auto [code, bytes] = decode_utf8(characters->text, at);  // JSON text is UTF-8
          codes.push_back(code);
          at += bytes;
        }
        if (std::adjacent_find(codes.begin(), codes.end(), [](auto a, auto b) { return a >= b; }) == codes.end())
          v = of_characters(std::move(codes));
      }
    }
    if (v.size() < 1 || v.to_json() != text)
      return fail(errc::bad_format, "not a vocabulary", where, "give a vocabulary that isotope-train wrote");
    return v;
  }

 private:
  vocabulary(text_unit unit, std::int32_t size, std::vector<std::uint32_t> codes) : unit_(unit), size_(size), codes_(std::move(codes)) {}

  text_unit unit_ = text_unit::bytes;
  std::int32_t size_ = 0;
  std::vector<std::uint32_t> codes_;
};

}  // namespace isotope::io
