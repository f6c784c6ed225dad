#pragma once
/// A bound on nested keys, checked before TOML is parsed: toml++ bounds nested values, but `a.a.a...` makes a table per dot and frees
/// them by recursion.
#include <cstddef>
#include <string_view>

namespace isotope::config {

/// The first line, from 1, that has more than `most` dots outside strings and comments before a character that cannot stand in a key;
/// 0 if there is none.
constexpr std::size_t line_of_deep_key(std::string_view text, int most) {
  std::size_t line = 1;
  int dots = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '#') {
      while (at + 1 < text.size() && text[at + 1] != '\n') ++at;
    } else if (c == '"' || c == '\'') {
      const bool block = text.substr(at, 3) == std::string_view(c == '"' ? "\"\"\"" : "'''");
      at += block ? 3 : 1;
      for (; at < text.size(); ++at) {
        if (text[at] == '\n' && !block) break;
        line += text[at] == '\n';
        if (text[at] == '\\' && c == '"') ++at;
        else if (text[at] == c && (!block || text.substr(at, 3) == std::string_view(c == '"' ? "\"\"\"" : "'''"))) break;
      }
      if (at < text.size() && text[at] == '\n') {
        --at;  // the string was not closed: the loop above sees the line's end
      } else if (block) {
        at += 2;
        for (int more = 0; more < 2 && at + 1 < text.size() && text[at + 1] == c; ++more) ++at;  // """" ends with a quote in the string
      }
    } else if (c == '.') {
      if (++dots > most) return line;
    } else if (c == '\n' || c == '=' || c == ',' || c == '{' || c == '}' || c == '[' || c == ']') {
      dots = 0;
      line += c == '\n';
    }
  }
  return 0;
}

}  // namespace isotope::config
