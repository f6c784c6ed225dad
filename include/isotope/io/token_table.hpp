#pragma once
/// The tokens of a vocabulary: bytes by id, and ids by bytes.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/json_text.hpp>

namespace isotope::io {

struct named_token {
  std::string bytes;
  std::int32_t id = 0;
};

/// Finds ids by open addressing; a token of up to 8 bytes is compared as one number.
class token_table {
 public:
  token_table() { index(0); }

  /// @error bad_format naming the token: an id or bytes that two tokens have, an id beyond twice the number of tokens (and 1024), an empty token
  static result<token_table> make(const std::vector<named_token>& tokens, const std::string& where) {
    return make(tokens, where, 2 * tokens.size() + 1024);
  }

  /// The same with a limit on ids.
  static result<token_table> make(const std::vector<named_token>& tokens, const std::string& where, std::size_t ids_below) {
    const auto refuse = [&](const named_token& t, const std::string& what) {
      return fail(errc::bad_format, "the token " + json_string(t.bytes) + " with the id " + std::to_string(t.id) + " " + what, where,
                  "give the vocabulary as its trainer wrote it");
    };
    token_table table;
    std::size_t size = 0, bytes = 0;
    for (const named_token& t : tokens) {
      if (t.bytes.empty()) return refuse(t, "is empty");
      if (t.id < 0 || static_cast<std::size_t>(t.id) >= ids_below) return refuse(t, "lies far from the other ids");
      size = std::max(size, static_cast<std::size_t>(t.id) + 1);
      bytes += t.bytes.size();
    }
    table.places_.assign(size, {});
    table.text_.reserve(bytes + 8);
    for (const named_token& t : tokens) {
      place& p = table.places_[static_cast<std::size_t>(t.id)];
      if (p.size != 0) return refuse(t, "has the id of another token");
      p = {static_cast<std::uint32_t>(table.text_.size()), static_cast<std::uint32_t>(t.bytes.size())};
      table.text_ += t.bytes;
    }
    const std::int32_t twice = table.index(tokens.size());
    if (twice >= 0) return refuse({std::string(table.bytes_of(twice)), twice}, "stands twice");
    return table;
  }

  /// One more than the largest id.
  std::int32_t size() const { return static_cast<std::int32_t>(places_.size()); }

  /// Bytes of the longest token.
  std::size_t longest() const { return longest_; }

  /// The bytes of an id; empty if no token has it.
  std::string_view bytes_of(std::int32_t id) const {
    if (id < 0 || static_cast<std::size_t>(id) >= places_.size()) return {};
    const place p = places_[static_cast<std::size_t>(id)];
    return {text_.data() + p.at, p.size};
  }

  /// The id of a token, or -1.
  std::int32_t find(std::string_view bytes) const { return find(bytes, bytes.data() + bytes.size()); }

  /// The same, where bytes may be read up to `end`, which is quicker.
  std::int32_t find(std::string_view bytes, const char* end) const {
    if (bytes.size() > longest_) return -1;
    const std::uint64_t head = head_of(bytes, end);
    for (std::size_t at = home_of(bytes, head);; at = (at + 1) & (slots_.size() - 1)) {
      const slot& s = slots_[at];
      if (s.size == 0) return -1;
      if (s.head == head && s.size == bytes.size() && (s.size <= 8 || bytes_of(s.id) == bytes)) return s.id;
    }
  }

 private:
  struct place {
    std::uint32_t at = 0, size = 0;  // in text_
  };
  struct slot {
    std::uint64_t head = 0;  // the first 8 bytes, or fewer
    std::uint32_t size = 0;  // 0: free
    std::int32_t id = -1;
  };

  static std::uint64_t head_of(std::string_view bytes, const char* end) {
    std::uint64_t head = 0;
    if (end - bytes.data() >= 8) {
      std::memcpy(&head, bytes.data(), 8);
      if (bytes.size() < 8) head &= ~std::uint64_t{0} >> (64 - 8 * bytes.size());
    } else {
      std::memcpy(&head, bytes.data(), std::min<std::size_t>(bytes.size(), 8));
    }
    return head;
  }
  std::size_t home_of(std::string_view bytes, std::uint64_t head) const {
    std::uint64_t h = head;
    for (std::size_t at = 8; at < bytes.size(); at += 8) {
      std::uint64_t part = 0;
      std::memcpy(&part, bytes.data() + at, std::min<std::size_t>(bytes.size() - at, 8));
      h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9u + part;
    }
    return static_cast<std::size_t>((h ^ h >> 31 ^ bytes.size()) * 0x9e3779b97f4a7c15u >> shift_);
  }

  /// Returns an id whose bytes another one has, or -1.
  std::int32_t index(std::size_t count) {
    slots_.assign(std::bit_ceil(2 * count + 2), {});
    shift_ = 64 - std::countr_zero(slots_.size());
    for (const place p : places_) longest_ = std::max<std::size_t>(longest_, p.size);
    for (std::int32_t id = 0; id < size(); ++id) {
      const std::string_view bytes = bytes_of(id);
      if (bytes.empty()) continue;
      const std::uint64_t head = head_of(bytes, text_.data() + text_.size());
      std::size_t at = home_of(bytes, head);
      for (; slots_[at].size != 0; at = (at + 1) & (slots_.size() - 1))
        if (slots_[at].head == head && bytes_of(slots_[at].id) == bytes) return id;
      slots_[at] = {head, static_cast<std::uint32_t>(bytes.size()), id};
    }
    return -1;
  }

  std::string text_;
  std::vector<place> places_;  // by id
  std::vector<slot> slots_;
  std::size_t longest_ = 0;
  int shift_ = 63;
};

}  // namespace isotope::io
