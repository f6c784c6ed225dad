#pragma once
/// UTF-8 text to code points and back, strictly: no overlong forms, surrogates or values past U+10FFFF. Decoded and encoded by utf8proc.
#include <utf8proc.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace isotope::io {

/// A code point and the bytes it took; no bytes if the text is not UTF-8 there.
struct decoded {
  std::uint32_t code = 0;
  std::size_t bytes = 0;
};

/// Decodes the code point at `at` (at < text.size()).
inline decoded decode_utf8(std::string_view text, std::size_t at) {
  const auto* first = reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at);
  utf8proc_int32_t code = 0;
  const utf8proc_ssize_t bytes = utf8proc_iterate(first, static_cast<utf8proc_ssize_t>(text.size() - at), &code);
  if (bytes <= 0) return {};
  return {static_cast<std::uint32_t>(code), static_cast<std::size_t>(bytes)};
}

/// Appends a code point (at most U+10FFFF, not a surrogate).
inline void append_utf8(std::string& out, std::uint32_t code) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(count));
}

}  // namespace isotope::io
