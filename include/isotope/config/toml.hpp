#pragma once
/// TOML 1.0 for configurations: tables, dotted keys and scalar values; arrays are refused, since no field is one. Own code, because toml++
/// 3.3 (the packaged one) asserts on malformed text such as `[=` or `a=[[}`, has undefined behaviour for unquoted characters outside
/// ASCII, and frees `a.a.a...` by recursion: a program must answer a bad file with one line.
/// Source: toml.io/en/v1.0.0.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <isotope/config/entry.hpp>
#include <isotope/core/error.hpp>
#include <isotope/io/json_text.hpp>
#include <isotope/io/utf8.hpp>

namespace isotope::config {

namespace detail {

class toml_reader {
 public:
  toml_reader(std::string_view text, const std::string& path) : text_(text), path_(path) {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);  // byte order mark
  }

  result<layer> document() {
    bool good = characters();
    while (good && more()) good = line();
    if (!good) return fail(errc::bad_format, "not TOML: " + problem_, where(), "correct the line");
    return std::move(out_);
  }

 private:
  /// What a name stands for so far. `implied`: by a longer header. `dotted`: by a dotted key, which closes it for headers.
  enum class meaning : std::uint8_t { implied, header, dotted, value };
  static constexpr int most_parts = 32, most_nested = 32;

  bool refuse(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return false;
  }
  std::string where() const { return path_ + ":" + std::to_string(line_); }
  bool more() const { return at_ < text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool next_is(std::string_view word) const { return text_.substr(at_).starts_with(word); }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void blanks() {
    while (peek() == ' ' || peek() == '\t') ++at_;
  }
  bool newline() {
    if (peek() == '\r' && peek(1) == '\n') ++at_;
    if (!take('\n')) return false;
    ++line_;
    return true;
  }

  /// Every character is UTF-8 and no control character: nowhere else need look.
  bool characters() {
    for (std::size_t at = 0; at < text_.size();) {
      const auto [code, bytes] = io::decode_utf8(text_, at);
      if (bytes == 0) return refuse("invalid UTF-8");
      const bool line_end = code == '\n' || (code == '\r' && at + 1 < text_.size() && text_[at + 1] == '\n');
      if ((code < 0x20 && code != '\t' && !line_end) || code == 0x7f) return refuse("a control character");
      line_ += code == '\n';
      at += bytes;
    }
    line_ = 1;
    return true;
  }

  bool line() {
    blanks();
    if (take('[')) {
      if (!header()) return false;
    } else if (more() && peek() != '#' && peek() != '\n' && peek() != '\r') {
      if (!pair(table_, 0)) return false;
    }
    blanks();
    if (peek() == '#') at_ = std::min(text_.find('\n', at_), text_.size());
    return newline() || !more() || refuse("something follows on the line");
  }

  bool header() {
    if (peek() == '[') return refuse("an array of tables: no field is an array");
    table_.clear();
    std::string key;
    int parts = 0;
    do {
      if (!table_.empty()) {
        const auto [known, fresh] = meanings_.try_emplace(table_.substr(0, table_.size() - 1), meaning::implied);
        if (known->second == meaning::value) return refuse("'" + known->first + "' is a value, not a table");
      }
      if (!part(key, parts)) return false;
      table_ += key + ".";
    } while (take('.'));
    if (!take(']')) return refuse("']' expected after a table's name");
    const auto [known, fresh] = meanings_.try_emplace(table_.substr(0, table_.size() - 1), meaning::header);
    if (!fresh && known->second != meaning::implied) return refuse("'" + known->first + "' is defined twice");
    known->second = meaning::header;
    return true;
  }

  /// key = value, or a.b = value, in a table whose name ends in '.'.
  bool pair(const std::string& table, int nested) {
    std::string name = table, key;
    int parts = 0;
    for (;;) {
      if (!part(key, parts)) return false;
      name += key;
      if (!take('.')) break;
      const auto [known, fresh] = meanings_.try_emplace(name, meaning::dotted);
      if (!fresh && known->second != meaning::dotted) return refuse("'" + name + "' is defined twice");
      name += '.';
    }
    if (!meanings_.try_emplace(name, meaning::value).second) return refuse("'" + name + "' is defined twice");
    if (!take('=')) return refuse("'=' expected after a key");
    blanks();
    if (take('{')) return inline_table(name + ".", nested + 1);
    entry e{std::move(name), {}, written_as::other, where()};
    if (!value(e)) return false;
    out_.push_back(std::move(e));
    return true;
  }

  bool inline_table(const std::string& table, int nested) {
    if (nested > most_nested) return refuse("tables nested deeper than " + std::to_string(most_nested));
    blanks();
    if (take('}')) return true;
    do {
      if (!pair(table, nested)) return false;
      blanks();
    } while (take(','));
    return take('}') || refuse("',' or '}' expected in a table");
  }

  static bool bare(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; }

  /// One part of a key, blanks around it.
  bool part(std::string& key, int& parts) {
    blanks();
    key.clear();
    if (++parts > most_parts) return refuse("a key of more than " + std::to_string(most_parts) + " parts");
    if (peek() == '"' || peek() == '\'') {
      if (next_is("\"\"\"") || next_is("'''") || !string(key)) return refuse("a key expected");
    } else {
      while (bare(peek())) key += text_[at_++];
      if (key.empty()) return refuse("a key expected");
    }
    if (key.empty() || key.find('.') != key.npos) return refuse("no field is named " + io::json_string(key));
    blanks();
    return true;
  }

  bool value(entry& e) {
    if (peek() == '"' || peek() == '\'') {
      e.form = written_as::string;
      return next_is("\"\"\"") || next_is("'''") ? block(e.value) : string(e.value);
    }
    if (peek() == '[') return refuse("an array: no field is one");
    const std::size_t start = at_;
    while (bare(peek()) || peek() == '+' || peek() == '.' || peek() == ':') ++at_;
    const std::string_view word = text_.substr(start, at_ - start);
    if (word == "true" || word == "false") {
      e.form = written_as::boolean;
      e.value = word;
      return true;
    }
    if (word.size() > 4 && digit(word[0]) && digit(word[1]) && (word[2] == ':' || word[4] == '-') &&
        word.find_first_not_of("0123456789-+:.TtZz") == word.npos) {
      e.value = "a date or time";
      return true;
    }
    e.form = written_as::number;
    return number(word, e.value) ||
           refuse(word.empty() ? "a value expected" : "'" + std::string(word) + "' is not a value: text needs quotes");
  }

  static bool digit(char c) { return c >= '0' && c <= '9'; }

  /// Digits with single underscores between; appends them without. The count tells an empty run.
  static std::size_t digits(std::string_view word, std::size_t& at, std::string& out) {
    const std::size_t before = out.size();
    while (at < word.size() &&
           (digit(word[at]) || (word[at] == '_' && at > 0 && digit(word[at - 1]) && at + 1 < word.size() && digit(word[at + 1])))) {
      if (word[at] != '_') out += word[at];
      ++at;
    }
    return out.size() - before;
  }

  static bool number(std::string_view word, std::string& out) {
    if (word.starts_with("0x") || word.starts_with("0o") || word.starts_with("0b")) return prefixed(word, out);
    std::size_t at = 0;
    if (word.starts_with('-')) out = "-";
    if (word.starts_with('-') || word.starts_with('+')) ++at;
    if (word.substr(at) == "inf" || word.substr(at) == "nan") {
      out += word.substr(at);
      return true;
    }
    const std::size_t first = at, whole = digits(word, at, out);
    if (whole == 0 || (whole > 1 && word[first] == '0')) return false;
    if (at < word.size() && word[at] == '.') {
      out += word[at++];
      if (digits(word, at, out) == 0) return false;
    }
    if (at < word.size() && (word[at] == 'e' || word[at] == 'E')) {
      out += word[at++];
      if (at < word.size() && (word[at] == '-' || word[at] == '+')) out += word[at++];
      if (digits(word, at, out) == 0) return false;
    }
    return at == word.size();
  }

  /// 0xff, 0o17, 0b1010, with underscores between digits.
  static bool prefixed(std::string_view word, std::string& out) {
    const int base = word[1] == 'x' ? 16 : word[1] == 'o' ? 8 : 2;
    std::string plain;
    for (std::size_t at = 2; at < word.size(); ++at) {
      const bool between = at > 2 && word[at - 1] != '_' && at + 1 < word.size();
      if (word[at] != '_') plain += word[at];
      else if (!between) return false;
    }
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), number, base);
    out = io::number_text(number);
    return error == std::errc() && end == plain.data() + plain.size();
  }

  /// A string on one line.
  bool string(std::string& out) {
    const char quote = text_[at_++];
    while (more() && peek() != '\n' && peek() != '\r') {
      if (take(quote)) return true;
      if (quote == '"' && peek() == '\\') {
        if (!escape(out)) return false;
      } else {
        out += text_[at_++];
      }
    }
    return refuse("a string without its closing quote");
  }

  /// A string over lines; a line break right after the opening is not part of it.
  bool block(std::string& out) {
    const char quote = peek();
    const std::string closing(3, quote);
    at_ += 3;
    newline();
    while (more()) {
      if (next_is(closing)) {
        at_ += 3;
        for (int more_quotes = 0; more_quotes < 2 && take(quote); ++more_quotes) out += quote;  // up to two belong to the string
        return true;
      }
      if (quote == '"' && peek() == '\\') {
        if (!continuation() && !escape(out)) return false;
      } else {
        line_ += peek() == '\n';
        out += text_[at_++];
      }
    }
    return refuse("a string without its closing quotes");
  }

  /// A backslash that ends a line drops every blank and line break up to the next character.
  bool continuation() {
    const std::size_t start = at_++;
    blanks();
    if (!newline()) {
      at_ = start;
      return false;
    }
    do blanks();
    while (newline());
    return true;
  }

  bool escape(std::string& out) {
    constexpr std::string_view letters = "\"\\bfnrt", meanings = "\"\\\b\f\n\r\t";
    const char letter = peek(1);
    at_ = std::min(at_ + 2, text_.size());
    if (const auto which = letters.find(letter); which != letters.npos) {
      out += meanings[which];
      return true;
    }
    const std::size_t length = letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
    const std::string_view hex = text_.substr(at_, length);
    std::uint32_t code = 0;
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
    if (length == 0 || hex.size() != length || error != std::errc() || end != hex.data() + length || code > 0x10ffff ||
        (code >= 0xd800 && code <= 0xdfff))
      return refuse("an unknown escape in a string");
    io::append_utf8(out, code);
    at_ += length;
    return true;
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::string table_;  // the current header's name and '.', empty at the top
  std::map<std::string, meaning, std::less<>> meanings_;
  std::string problem_;
  layer out_;
};

}  // namespace detail

/// Flattens a TOML document to keys such as `model.width`. `path` names it in failures.
///
/// @error bad_format with path:line
inline result<layer> parse_toml(std::string_view text, const std::string& path) { return detail::toml_reader(text, path).document(); }

}  // namespace isotope::config
