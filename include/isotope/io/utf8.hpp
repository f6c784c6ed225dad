#pragma once
/// UTF-8 text to code points and back, strictly: no overlong forms, surrogates or values past U+10FFFF.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace isotope::io {

/// A code point and the bytes it took; no bytes: the text is not UTF-8 there.
struct decoded {
  std::uint32_t code = 0;
  std::size_t bytes = 0;
};

/// Decodes the code point at `at` (at < text.size()).
/// Source: Unicode 15, table 3-7, "Well-Formed UTF-8 Byte Sequences".
constexpr decoded decode_utf8(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return std::uint32_t(static_cast<unsigned char>(text[at + i])); };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() - at < length) return {};
  std::uint32_t code = first & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return {};
    code = (code << 6) | (byte(i) & 0x3fu);
  }
  if (length == 3 && (code < 0x800 || (code >= 0xd800 && code <= 0xdfff))) return {};
  if (length == 4 && (code < 0x10000 || code > 0x10ffff)) return {};
  return {code, length};
}

/// Appends a code point (at most U+10FFFF, not a surrogate).
inline void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t b) { out += static_cast<char>(static_cast<unsigned char>(b)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | (code >> 6));
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3f));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

}  // namespace isotope::io
