#pragma once
/// What toml++ 3.3 does not survive, refused before it sees the text: it asserts that a key or value begins as one (`[=`, `a=[[}`), has
/// undefined behaviour for unquoted characters outside ASCII, and frees `a.a.a...` by recursion. No field is an array, so none passes.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include <isotope/io/utf8.hpp>

namespace isotope::config {

/// Why a text must not reach the parser, and the line from 1; no problem: it may.
struct toml_problem {
  std::string what;
  std::size_t line = 0;
};

namespace detail {

/// Just past the string that opens at `at`; 0 if it does not close.
inline std::size_t end_of_toml_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool block = text.substr(at).starts_with(three);
  for (at += block ? 3 : 1; at < text.size() && (block || text[at] != '\n'); ++at) {
    if (quote == '"' && text[at] == '\\') ++at;
    else if (!block && text[at] == quote) return at + 1;
    else if (block && text.substr(at).starts_with(three)) {
      at += 3;  // up to two more quotes belong to the string
      for (int more = 0; more < 2 && at < text.size() && text[at] == quote; ++more) ++at;
      return at;
    }
  }
  return 0;
}

}  // namespace detail

/// Scans tokens only: strings and comments are skipped, the grammar is the parser's.
inline toml_problem guard_toml(std::string_view text) {
  constexpr int most_parts = 32, most_braces = 32;
  std::size_t line = 1;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = io::decode_utf8(text, at);
    if (bytes == 0) return {"invalid UTF-8", line};
    const bool line_end = code == '\n' || (code == '\r' && text.substr(at).starts_with("\r\n"));
    if ((code < 0x20 && code != '\t' && !line_end) || code == 0x7f) return {"a control character", line};
    line += code == '\n';
    at += bytes;
  }
  line = 1;
  constexpr std::string_view bare = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  int parts = 1, braces = 0;
  char before = '\n';  // the last character that is no blank: after a line end, '[' opens a header
  for (std::size_t at = text.starts_with("\xef\xbb\xbf") ? 3 : 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool quote = c == '"' || c == '\'';
    if (c == ' ' || c == '\t') continue;
    if (c == '[' && before != '\n') return {"an array: no field is one", line};
    if (before == '[' && !quote && bare.find(c) == bare.npos) return {"a table's name expected", line};
    if (before == '=' && !quote && (c == '_' || (bare.find(c) == bare.npos && c != '+' && c != '{'))) return {"a value expected", line};
    if (c == '#') at = std::min(text.find('\n', at), text.size()) - 1;
    if (quote) {
      const std::size_t end = detail::end_of_toml_string(text, at);
      if (end == 0) return {"a string without its closing quotes", line};
      line += static_cast<std::size_t>(std::count(&text[at], &text[at] + (end - at), '\n'));
      at = end - 1;
    }
    if (static_cast<unsigned char>(c) >= 0x80) return {"a character outside ASCII without quotes", line};
    if (c == '.' && ++parts > most_parts) return {"a key of more than " + std::to_string(most_parts) + " parts", line};
    if (c == '{' && ++braces > most_braces) return {"tables nested deeper than " + std::to_string(most_braces), line};
    if (c == '}') --braces;
    if (c == '=' || c == ',' || c == '\n') parts = 1;
    line += c == '\n';
    before = c;
  }
  return {};
}

}  // namespace isotope::config
