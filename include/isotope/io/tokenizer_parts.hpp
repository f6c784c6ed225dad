#pragma once
/// Parts of a tokenizer beside its model: tokens that are found in the text before anything else, and what is put around the ids.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/json_text.hpp>
#include <isotope/io/unicode.hpp>
#include <isotope/io/wordpiece.hpp>

namespace isotope::io {

/// A token that stands for itself in a text, such as <|endoftext|>.
struct added_token {
  std::string content;
  std::int32_t id = 0;
  bool special = true;      // is no token of plain text (`specials::plain`), and may be left out when decoding
  bool normalized = false;  // is found after normalization
};

/// Finds tokens in a text: the leftmost one, and of those that start there the longest.
class token_finder {
 public:
  struct found {
    std::size_t at, size;
    std::int32_t id;
  };

  token_finder() = default;
  explicit token_finder(std::vector<std::pair<std::string, std::int32_t>> tokens) : tokens_(std::move(tokens)) {
    std::sort(tokens_.begin(), tokens_.end());
    for (const auto& [content, id] : tokens_) starts_[static_cast<unsigned char>(content[0])] = true;
    same_start_ = !tokens_.empty() && tokens_.front().first[0] == tokens_.back().first[0];
  }

  bool empty() const { return tokens_.empty(); }

  /// The first token from `from` on; at the end of the text with size 0, if there is none.
  found next(std::string_view text, std::size_t from) const {
    for (std::size_t at = from; !tokens_.empty() && at < text.size(); ++at) {
      if (same_start_) {
        const void* const place = std::memchr(text.data() + at, tokens_[0].first[0], text.size() - at);
        if (place == nullptr) break;
        at = static_cast<std::size_t>(static_cast<const char*>(place) - text.data());
      }
      if (!starts_[static_cast<unsigned char>(text[at])]) continue;
      if (const found f = longest(text, at); f.size != 0) return f;
    }
    return {text.size(), 0, -1};
  }

 private:
  /// Narrows the range of tokens that agree with the text, byte by byte.
  found longest(std::string_view text, std::size_t at) const {
    found best{at, 0, -1};
    auto first = tokens_.begin(), last = tokens_.end();
    for (std::size_t i = 0; at + i < text.size() && first != last; ++i) {
      const auto byte = static_cast<unsigned char>(text[at + i]);
      const auto of = [&](const auto& t) { return t.first.size() > i ? static_cast<int>(static_cast<unsigned char>(t.first[i])) : -1; };
      first = std::partition_point(first, last, [&](const auto& t) { return of(t) < byte; });
      last = std::partition_point(first, last, [&](const auto& t) { return of(t) == byte; });
      if (first != last && first->first.size() == i + 1) best = {at, i + 1, first->second};
    }
    return best;
  }

  std::vector<std::pair<std::string, std::int32_t>> tokens_;
  std::array<bool, 256> starts_{};
  bool same_start_ = false;
};

/// One element of what is put together to the ids of a text or of a pair of texts.
struct frame_part {
  enum class kind : std::uint8_t { token, first_text, second_text };
  kind is = kind::first_text;
  std::int32_t id = -1;   // of a token
  std::uint8_t type = 0;  // the type id of its ids
};

/// For one text and for two.
struct frame {
  std::vector<frame_part> single{{frame_part::kind::first_text, -1, 0}};
  std::vector<frame_part> pair{{frame_part::kind::first_text, -1, 0}, {frame_part::kind::second_text, -1, 1}};
};

/// A text in NFC. `from` has for each of its bytes the bytes of the original text from which it was made, if asked for.
struct normal_text {
  std::string text;
  std::vector<token_span> from;
};

/// Bytes that are not UTF-8 are kept.
inline normal_text nfc(std::string_view text, bool spans) {
  normal_text out;
  std::vector<unicode::traced> codes;
  const auto take = [&](token_span from) {
    if (spans) out.from.resize(out.text.size(), from);
  };
  const auto flush = [&] {
    unicode::sort_marks(codes);
    unicode::compose(codes);
    for (const unicode::traced& t : codes) {
      unicode::append(out.text, t.code);
      take({t.first, t.last});
    }
    codes.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const unicode::point p = unicode::decode(text.data() + at, text.data() + text.size());
    if (p.bytes == 0) {
      flush();
      out.text += text[at];
      take({at, at + 1});
      ++at;
      continue;
    }
    unicode::append_nfd(codes, p.code, at, at + p.bytes);
    at += p.bytes;
  }
  flush();
  return out;
}

/// Moves the complete characters at the start of `bytes` to `out`, with U+FFFD for what is not UTF-8. An incomplete character at the end stays, or
/// becomes U+FFFD if nothing follows.
inline void take_characters(std::string& bytes, std::string& out, bool ends) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t start = at;
    const char* const end = bytes.data() + bytes.size();
    while (at < bytes.size()) {
      const std::uint32_t size = static_cast<unsigned char>(bytes[at]) < 0x80 ? 1 : unicode::decode(bytes.data() + at, end).bytes;
      if (size == 0) break;
      at += size;
    }
    out.append(bytes, start, at - start);
    if (at == bytes.size()) break;
    const char* const here = bytes.data() + at;
    // The longest start of a character: its first byte, and following ones while some completion is a character.
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(here[i]); };
    const std::size_t wanted = byte(0) < 0xc2 || byte(0) > 0xf4 ? 1 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
    const unsigned char least = byte(0) == 0xe0   ? 0xa0
                                : byte(0) == 0xf0 ? 0x90
                                                  : 0x80,
                        most = byte(0) == 0xed   ? 0x9f
                               : byte(0) == 0xf4 ? 0x8f
                                                 : 0xbf;
    std::size_t size = 1;
    if (size < wanted && here + size != end && byte(size) >= least && byte(size) <= most) {
      ++size;
      while (size < wanted && here + size != end && (byte(size) & 0xc0) == 0x80) ++size;
    }
    if (!ends && size < wanted && here + size == end) break;
    out += "\xef\xbf\xbd";
    at += size;
  }
  bytes.erase(0, at);
}

}  // namespace isotope::io
