#pragma once
/// Splits a text into the pieces within which byte-pair encoding merges, as the patterns of GPT-2, Llama 3 and Qwen 2 do. Each pattern is a scanner: no
/// regular expressions. A byte that is not UTF-8 counts as a character that is neither letter, number nor white space.
#include <cstdint>
#include <string_view>

#include <isotope/io/unicode.hpp>

namespace isotope::io {

enum class split_rule : std::uint8_t { gpt2, llama3, qwen2 };

/// What the file of a tokenizer says for each rule.
constexpr std::string_view pattern_of(split_rule rule) {
  switch (rule) {
    case split_rule::gpt2: return R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
    case split_rule::llama3:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case split_rule::qwen2:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  }
  return "";
}

/// Finds the end of the piece that starts at a byte.
template <split_rule Rule> class piece_scanner {
 public:
  /// @param end  of the text
  piece_scanner(const unicode::data& classes, const char* end) : classes_(classes), end_(end) {}

  /// @param at  where a piece starts (at < end)
  const char* next(const char* at) const {
    if (*at == '\'')
      if (const char* after = contraction(at); after != at) return after;
    const character c = read(at);
    const char* const after = at + c.bytes;
    if (c.is(unicode::letter)) return letters(after);
    if constexpr (Rule == split_rule::gpt2) {
      if (*at == ' ' && after != end_) {  // belongs to what follows
        const character d = read(after);
        if (!d.is(unicode::space)) return rest_of(d, after + d.bytes);
      }
      if (!c.is(unicode::space)) return rest_of(c, after);
    } else {
      if (c.is(unicode::number)) return numbers(after, Rule == split_rule::llama3 ? 2 : 0);
      if (after != end_) {
        const character d = read(after);
        if (d.is(unicode::letter) && *at != '\n' && *at != '\r') return letters(after + d.bytes);
        if (*at == ' ' && d.is_other()) return line_ends(others(after + d.bytes));
      }
      if (!c.is(unicode::space)) return line_ends(others(after));
    }
    return blanks(at, after);
  }

 private:
  struct character {
    std::uint8_t bits;
    std::uint32_t bytes;
    bool is(unicode::code_class c) const { return (bits & c) != 0; }
    bool is_other() const { return (bits & (unicode::letter | unicode::number | unicode::space)) == 0; }
  };

  character read(const char* at) const {
    const auto byte = static_cast<unsigned char>(*at);
    if (byte < 0x80) return {classes_[byte], 1};
    const unicode::point p = unicode::decode(at, end_);
    if (p.bytes == 0) return {0, 1};
    return {classes_[p.code], p.bytes};
  }

  /// Passes characters as long as `wanted`, at most `most` of them.
  template <class Wanted> const char* pass(const char* at, Wanted&& wanted, std::size_t most = static_cast<std::size_t>(-1)) const {
    for (; at != end_ && most != 0; --most) {
      const character c = read(at);
      if (!wanted(c)) break;
      at += c.bytes;
    }
    return at;
  }
  const char* letters(const char* at) const {
    return pass(at, [](character c) { return c.is(unicode::letter); });
  }
  const char* numbers(const char* at, std::size_t most) const {
    return pass(at, [](character c) { return c.is(unicode::number); }, most);
  }
  const char* others(const char* at) const {
    return pass(at, [](character c) { return c.is_other(); });
  }
  const char* rest_of(character c, const char* at) const {
    if (c.is(unicode::letter)) return letters(at);
    return c.is(unicode::number) ? numbers(at, static_cast<std::size_t>(-1)) : others(at);
  }
  const char* line_ends(const char* at) const {
    while (at != end_ && (*at == '\n' || *at == '\r')) ++at;
    return at;
  }

  /// A run of white space: up to its last line end, where the rule says so, and otherwise all of it if nothing follows, and all but its last character,
  /// but at least one, if something does.
  const char* blanks(const char* at, const char* after) const {
    const char *last = at, *line = nullptr, *end = after;
    if (*at == '\n' || *at == '\r') line = after;
    while (end != end_) {
      const character c = read(end);
      if (!c.is(unicode::space)) break;
      last = end;
      end += c.bytes;
      if (*last == '\n' || *last == '\r') line = end;
    }
    if (Rule != split_rule::gpt2 && line != nullptr) return line;
    return end == end_ || last == at ? end : last;
  }

  /// The end of 's 't 're 've 'm 'll 'd, or `at`. Without regard to case but in GPT-2, where U+017F is an s, too.
  const char* contraction(const char* at) const {
    const auto letter = [&](int i) {
      if (end_ - at <= i) return '\0';
      const char c = at[i];
      return Rule != split_rule::gpt2 && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    };
    const char first = letter(1), second = letter(2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
    if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l')) return at + 3;
    if (Rule != split_rule::gpt2 && first == '\xc5' && second == '\xbf') return at + 3;
    return at;
  }

  const unicode::data& classes_;
  const char* end_;
};

}  // namespace isotope::io
