#pragma once
/// Refuses texts that toml++ 3.3 does not survive, before it sees them. It asserts that a key or value begins as one (`[=`, `a=[[}`); it tests
/// characters outside ASCII for being blank, which is undefined behaviour for some; and it frees `a.a.a...` by recursion. Arrays never pass, because
/// no field is one.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include <isotope/io/utf8.hpp>

namespace isotope::config {

/// The reason why a text must not reach the parser, and the line, counted from 1. Without a problem it may.
struct toml_problem {
  std::string what;
  std::size_t line = 0;
};

namespace detail {

inline constexpr std::string_view toml_bare = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

inline bool outside_ascii(std::string_view text, std::size_t at) {
  return at < text.size() && static_cast<unsigned char>(text[at]) >= 0x80;
}

/// Returns the position behind the string that opens at `at`; 0 if the string must not pass, with the reason.
inline std::size_t end_of_toml_string(std::string_view text, std::size_t at, std::string& why) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool block = text.substr(at).starts_with(three);
  for (at += block ? 3 : 1; at < text.size() && (block || text[at] != '\n'); ++at) {
    if (quote == '"' && text[at] == '\\') {
      // The parser tests whether what follows a backslash and blanks is blank.
      if (block && outside_ascii(text, text.find_first_not_of(" \t\r\n", at + 1))) {
        why = "a character outside ASCII right after a backslash";
        return 0;
      }
      ++at;
    } else if (!block && text[at] == quote) {
      return at + 1;
    } else if (block && text.substr(at).starts_with(three)) {
      at += 3;  // up to two more quotes belong to the string
      for (int more = 0; more < 2 && at < text.size() && text[at] == quote; ++more) ++at;
      return at;
    }
  }
  why = "a string without its closing quotes";
  return 0;
}

/// Returns the position behind the number or word at `at`; 0 if what follows does not end it, because the parser would read on to a blank, through
/// strings.
inline std::size_t end_of_toml_word(std::string_view text, std::size_t at) {
  const std::string inside = std::string(toml_bare) + "+.:";
  if (inside.find(text[at]) == inside.npos || text[at] == '_') return 0;
  at = std::min(text.find_first_not_of(inside, at), text.size());
  return at == text.size() || std::string_view(" \t\r\n,}#").find(text[at]) != std::string_view::npos ? at : 0;
}

/// Whether a word is a date or time, or would be taken for one: it has a colon, or a hyphen after a digit. The parser asserts inside malformed ones,
/// and no field is one.
inline bool like_toml_date(std::string_view word) {
  if (word.find(':') != word.npos) return true;
  for (std::size_t i = 1; i < word.size(); ++i)
    if (word[i] == '-' && word[i - 1] >= '0' && word[i - 1] <= '9') return true;
  return false;
}

}  // namespace detail

/// Scans only tokens: it skips strings and comments and leaves the grammar to the parser.
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
  int parts = 1, braces = 0;
  char before = '\n';  // the last character that is not blank; '[' after a line end opens a header
  for (std::size_t at = text.starts_with("\xef\xbb\xbf") ? 3 : 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool quote = c == '"' || c == '\'';
    if (c == ' ' || c == '\t') continue;
    if (c == '[' && before != '\n') return {"an array: no field is one", line};
    if (before == '[' && !quote && detail::toml_bare.find(c) == detail::toml_bare.npos) return {"a table's name expected", line};
    if (c == '{' && before != '=') return {"a table where no value stands", line};
    if (c == '#') at = std::min(text.find('\n', at), text.size()) - 1;
    if (quote) {
      std::string why;
      const std::size_t end = detail::end_of_toml_string(text, at, why);
      if (end == 0) return {why, line};
      line += static_cast<std::size_t>(std::count(&text[at], &text[at] + (end - at), '\n'));
      at = end - 1;
    } else if (before == '=' && c != '{') {
      const std::size_t end = detail::end_of_toml_word(text, at);
      if (end == 0) return {"a value expected: text needs quotes", line};
      if (detail::like_toml_date(text.substr(at, end - at))) return {"a date or time: no field is one", line};
      at = end - 1;
      before = 'x';
      continue;
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
