#pragma once
/// JSON (RFC 8259), strict: what headers, checkpoints and configuration need. Own code rather than Boost.JSON because a safetensors header
/// must not repeat a key (Boost's parser keeps the last silently), messages need line numbers, and a header-only library has no
/// translation unit to put a compiled parser in.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/utf8.hpp>

namespace isotope::io {

struct json_member;

/// One JSON value. Numbers keep their digits: the reader decides which C++ number they must fit.
struct json {
  enum class kind : std::uint8_t { null, boolean, number, string, array, object };
  kind is = kind::null;
  bool boolean = false;
  int line = 1;      // where it starts, from 1
  std::string text;  // the digits of a number, the decoded characters of a string
  std::vector<json> items;
  std::vector<json_member> members;  // in the order of the text; no key twice

  const json* find(std::string_view key) const;
};

struct json_member {
  std::string key;
  json value;
};

inline const json* json::find(std::string_view key) const {
  for (const json_member& m : members)
    if (m.key == key) return &m.value;
  return nullptr;
}

constexpr std::string_view name_of(json::kind k) {
  switch (k) {
    case json::kind::null: return "null";
    case json::kind::boolean: return "a boolean";
    case json::kind::number: return "a number";
    case json::kind::string: return "a string";
    case json::kind::array: return "an array";
    case json::kind::object: return "an object";
  }
  return "nothing";
}

namespace detail {

class json_reader {
 public:
  json_reader(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  result<json> document() {
    json root;
    if (value(root, 0)) {
      blanks();
      if (at_ == text_.size()) return root;
      refuse("something follows the value");
    }
    return fail(errc::bad_format, "not JSON: " + problem_, std::string(where_) + ":" + std::to_string(line_));
  }

 private:
  static constexpr int max_depth = 32;  // bounds the recursion on hostile text

  bool refuse(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return false;
  }
  bool more() const { return at_ < text_.size(); }
  char peek() const { return more() ? text_[at_] : '\0'; }
  void blanks() {
    while (more() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) line_ += text_[at_++] == '\n';
  }
  bool take(char c) {
    blanks();
    if (peek() != c || !more()) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view w) {
    if (text_.substr(at_, w.size()) != w) return refuse("unknown word");
    at_ += w.size();
    return true;
  }

  bool value(json& out, int depth) {
    blanks();
    out.line = line_;
    if (depth > max_depth) return refuse("nested deeper than " + std::to_string(max_depth));
    if (!more()) return refuse("the text ends where a value should be");
    switch (peek()) {
      case '{': return object(out, depth);
      case '[': return array(out, depth);
      case '"': out.is = json::kind::string; return string(out.text);
      case 't': out.is = json::kind::boolean; return out.boolean = true, word("true");
      case 'f': out.is = json::kind::boolean; return word("false");
      case 'n': return word("null");
      default: out.is = json::kind::number; return number(out.text);
    }
  }

  bool object(json& out, int depth) {
    out.is = json::kind::object;
    ++at_;
    if (take('}')) return true;
    do {
      blanks();
      auto& [key, member] = out.members.emplace_back();
      if (!string(key)) return false;
      if (!take(':')) return refuse("':' expected after a key");
      if (!value(member, depth + 1)) return false;
    } while (take(','));
    return take('}') ? unique_keys(out) : refuse("',' or '}' expected");
  }

  bool unique_keys(const json& out) {
    std::vector<std::string_view> keys;
    for (const auto& member : out.members) keys.push_back(member.key);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    return twice == keys.end() || refuse("the key '" + std::string(*twice) + "' stands twice");
  }

  bool array(json& out, int depth) {
    out.is = json::kind::array;
    ++at_;
    if (take(']')) return true;
    do {
      if (!value(out.items.emplace_back(), depth + 1)) return false;
    } while (take(','));
    return take(']') || refuse("',' or ']' expected");
  }

  static bool digit(char c) { return c >= '0' && c <= '9'; }
  bool digits() {
    if (!digit(peek())) return refuse("a digit expected");
    while (digit(peek())) ++at_;
    return true;
  }
  bool number(std::string& out) {
    const std::size_t start = at_;
    if (peek() == '-') ++at_;
    if (peek() == '0') ++at_;
    else if (!digit(peek())) return refuse("a value expected");
    else digits();
    if (peek() == '.') {
      ++at_;
      if (!digits()) return false;
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!digits()) return false;
    }
    out = text_.substr(start, at_ - start);
    return true;
  }

  bool string(std::string& out) {
    if (peek() != '"') return refuse("a string in double quotes expected");
    ++at_;
    while (more()) {
      const char c = text_[at_];
      if (c == '"') return ++at_, true;
      if (static_cast<unsigned char>(c) < 0x20) return refuse("a control character in a string");
      if (c == '\\') {
        if (!escape(out)) return false;
        continue;
      }
      const std::size_t bytes = decode_utf8(text_, at_).bytes;
      if (bytes == 0) return refuse("invalid UTF-8 in a string");
      out.append(text_, at_, bytes);
      at_ += bytes;
    }
    return refuse("the text ends inside a string");
  }

  bool escape(std::string& out) {
    constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    ++at_;
    if (const auto which = letters.find(peek()); more() && which != std::string_view::npos) {
      out += meanings[which];
      ++at_;
      return true;
    }
    std::uint32_t code = 0, low = 0;
    if (!unit(code)) return false;
    if (code >= 0xdc00 && code <= 0xdfff) return refuse("a low surrogate without its high one");
    if (code >= 0xd800 && code <= 0xdbff) {
      if (!more() || text_[at_] != '\\') return refuse("a high surrogate without its low one");
      ++at_;
      if (!unit(low)) return false;
      if (low < 0xdc00 || low > 0xdfff) return refuse("a high surrogate without its low one");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    append_utf8(out, code);
    return true;
  }

  /// The four hexadecimal digits after `u`.
  bool unit(std::uint32_t& code) {
    if (peek() != 'u' || text_.size() - at_ < 5) return refuse("unknown escape");
    for (++at_; const char c : text_.substr(at_, 4)) {
      const int nibble = digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
      if (nibble < 0) return refuse("unknown escape");
      code = code * 16 + static_cast<std::uint32_t>(nibble);
    }
    at_ += 4;
    return true;
  }

  std::string_view text_, where_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::string problem_;
};

}  // namespace detail

/// Parses one JSON document. `where` names it in failures.
///
/// @error bad_format with the line: a syntax error, a repeated key, invalid UTF-8, more than 32 levels
inline result<json> parse_json(std::string_view text, std::string_view where) { return detail::json_reader(text, where).document(); }

}  // namespace isotope::io
