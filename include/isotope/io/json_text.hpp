#pragma once
/// Writes C++ values as JSON text: the shortest form that reads back to the same value, so equal values give equal bytes. Boost.JSON writes strings;
/// numbers are written here, because Boost's always have an exponent (1E-1).
#include <boost/json/serialize.hpp>

#include <charconv>
#include <cmath>
#include <concepts>
#include <string>
#include <string_view>

#include <isotope/io/utf8.hpp>

namespace isotope::io {

/// Returns the shortest decimal text that reads back to x, independent of the locale.
template <class T> requires std::integral<T> || std::floating_point<T> std::string number_text(T x) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, x).ptr;
  return {digits, end};
}

/// Returns a JSON string in quotes. Bytes that are not UTF-8 become U+FFFD, because JSON cannot hold them.
inline std::string json_string(std::string_view s) {
  std::string valid;
  for (std::size_t at = 0; at < s.size();) {
    const auto [code, bytes] = decode_utf8(s, at);
    append_utf8(valid, bytes == 0 ? 0xfffd : code);
    at += bytes == 0 ? 1 : bytes;
  }
  return boost::json::serialize(boost::json::string_view(valid));
}

/// Returns a JSON number, or the strings "inf", "-inf", "nan" for what JSON numbers cannot express.
inline std::string json_number(double x) { return std::isfinite(x) ? number_text(x) : json_string(number_text(x)); }

}  // namespace isotope::io
