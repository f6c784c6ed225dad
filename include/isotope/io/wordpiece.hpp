#pragma once
/// WordPiece, as BERT uses it: a text is cleaned and split into words, and a word into the longest pieces that the vocabulary has.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/token_table.hpp>
#include <isotope/io/unicode.hpp>

namespace isotope::io {

/// Bytes [first, last) of a text.
struct token_span {
  std::size_t first = 0, last = 0;
  friend bool operator==(const token_span&, const token_span&) = default;
};

/// How BERT's normalizer changes a text.
struct bert_rules {
  bool clean = true;          // drops controls, and makes white space blanks
  bool ideographs = true;     // puts blanks around CJK ideographs
  bool strip_accents = true;  // NFD without nonspacing marks
  bool lowercase = true;
};

struct wordpiece_options {
  bert_rules rules;
  std::string unknown = "[UNK]",
              prefix = "##";       // the token for words that the vocabulary lacks, and the mark of pieces that continue a word
  std::size_t longest_word = 100;  // in code points; longer words are unknown
  bool clean_up = true;            // decoding leaves out blanks before marks such as a full stop
};

/// A vocabulary of words and pieces of words.
class wordpiece {
 public:
  /// @error bad_format: the vocabulary lacks the unknown token; as token_table
  static result<wordpiece> make(const std::vector<named_token>& tokens, wordpiece_options options, const std::string& where) {
    wordpiece m;
    std::vector<named_token> inner;
    for (const named_token& t : tokens)
      if (t.bytes.size() > options.prefix.size() && t.bytes.starts_with(options.prefix))
        inner.push_back({t.bytes.substr(options.prefix.size()), t.id});
    auto all = token_table::make(tokens, where);
    if (!all) return std::move(all).error();
    m.tokens_ = *std::move(all);
    m.unknown_ = m.tokens_.find(options.unknown);
    if (m.unknown_ < 0)
      return fail(errc::bad_format, "the vocabulary lacks the token " + json_string(options.unknown) + " for unknown words", where,
                  "give the vocabulary as its trainer wrote it");
    auto continuing = token_table::make(inner, where, static_cast<std::size_t>(m.tokens_.size()));
    if (!continuing) return std::move(continuing).error();
    m.inner_ = *std::move(continuing);
    m.options_ = std::move(options);
    for (std::uint32_t c = 0; c < 128; ++c) {
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), blank = c == ' ' || (c >= 9 && c <= 13);
      ascii& a = m.ascii_[c];
      a.becomes = static_cast<char>(letter && m.options_.rules.lowercase ? c | 0x20 : c);
      if (letter || (c >= '0' && c <= '9')) a.is = kind::word;
      else if (m.options_.rules.clean && (c < 9 || (c > 10 && c < 32 && c != 13) || c == 127)) a.is = kind::dropped;
      else if (blank) a.is = kind::blank;
      else a.is = c < 32 || c == 127 ? kind::word : kind::alone;
    }
    return m;
  }

  const token_table& tokens() const { return tokens_; }
  const wordpiece_options& options() const { return options_; }

  /// Appends the ids of a text and, if `spans` is not null, the bytes from which each was made, counted from `first`. A byte that is not UTF-8 counts as
  /// U+FFFD.
  void encode(std::string_view text, std::vector<std::int32_t>& ids, std::vector<token_span>* spans = nullptr,
              std::size_t first = 0) const {
    progress p{unicode::data::get(), ids, spans, first};
    const char *const begin = text.data(), *const end = begin + text.size();
    for (const char* at = begin; at != end;) {
      const auto byte = static_cast<unsigned char>(*at);
      const auto here = static_cast<std::size_t>(at - begin);
      if (byte >= 0x80) {
        const unicode::point read_here = unicode::decode(at, end);
        const std::size_t bytes = read_here.bytes == 0 ? 1 : read_here.bytes;
        read(p, read_here.bytes == 0 ? 0xfffd : read_here.code, {here, here + bytes});
        at += bytes;
        continue;
      }
      ++at;
      const ascii a = ascii_[byte];
      if (a.is == kind::dropped) continue;
      settle(p);
      if (a.is == kind::word) add(p, static_cast<unsigned char>(a.becomes), {here, here + 1});
      else if (a.is == kind::alone) alone(p, byte, {here, here + 1});
      else finish(p);
    }
    settle(p);
    finish(p);
  }

 private:
  enum class kind : std::uint8_t { word, blank, alone, dropped };
  struct ascii {
    kind is = kind::word;
    char becomes = 0;
  };

  /// What has been read of a text: a normalized word that may go on, and after it code points that are not yet in canonical order.
  struct progress {
    const unicode::data& classes;
    std::vector<std::int32_t>& ids;
    std::vector<token_span>* spans;  // may be null
    std::size_t first;               // is added to spans
    std::string bytes{};             // of the word
    std::vector<token_span> from{};  // where each of its bytes comes from, if spans are wanted
    std::size_t points = 0;          // in the word
    token_span all{};                // where the word comes from
    std::vector<unicode::traced> pending{};
  };

  /// Adds a code point to the word. Of a word that is too long only the length counts.
  void add(progress& p, std::uint32_t code, token_span from) const {
    if (p.points++ == 0) p.all.first = from.first;
    p.all.last = std::max(p.all.last, from.last);
    if (p.points > options_.longest_word) return;
    if (code < 0x80) p.bytes += static_cast<char>(code);
    else unicode::append(p.bytes, code);
    if (p.spans != nullptr) p.from.resize(p.bytes.size(), from);
  }

  /// Ends the word, if there is one, and appends its pieces.
  void finish(progress& p) const {
    if (p.points == 0) return;
    const std::size_t before = p.ids.size();
    const auto keep = [&](std::int32_t id, token_span span) {
      p.ids.push_back(id);
      if (p.spans != nullptr) p.spans->push_back({p.first + span.first, p.first + span.last});
    };
    bool known = p.points <= options_.longest_word;
    for (std::size_t at = 0; known && at < p.bytes.size();) {
      const token_table& table = at == 0 ? tokens_ : inner_;
      std::size_t size = std::min(p.bytes.size() - at, table.longest());
      std::int32_t id = -1;
      for (; size > 0; --size)
        if (id = table.find({p.bytes.data() + at, size}, p.bytes.data() + p.bytes.size()); id >= 0) break;
      known = id >= 0;
      if (known) keep(id, p.spans != nullptr ? token_span{p.from[at].first, p.from[at + size - 1].last} : token_span{});
      at += size;
    }
    if (!known) {
      p.ids.resize(before);
      if (p.spans != nullptr) p.spans->resize(before);
      keep(unknown_, p.all);
    }
    p.bytes.clear();
    p.from.clear();
    p.points = 0;
    p.all = {};
  }

  void alone(progress& p, std::uint32_t code, token_span from) const {
    finish(p);
    add(p, code, from);
    finish(p);
  }

  /// Moves the pending code points to words, in canonical order, without accents and in lower case, as the rules say.
  void settle(progress& p) const {
    if (p.pending.empty()) return;
    const bert_rules& rules = options_.rules;
    if (rules.strip_accents) unicode::sort_marks(p.pending);
    for (const unicode::traced& t : p.pending) {
      const token_span from{t.first, t.last};
      if (t.code < 0x80) {
        if (ascii_[t.code].is == kind::alone) alone(p, t.code, from);
        else add(p, static_cast<unsigned char>(ascii_[t.code].becomes), from);
        continue;
      }
      const std::uint8_t c = p.classes[t.code];
      if (rules.strip_accents && (c & unicode::mark) != 0) continue;
      if ((c & unicode::punctuation) != 0) {
        alone(p, t.code, from);
      } else if (rules.lowercase && t.code == 0x130) {  // the one character whose lower case is two code points
        add(p, 'i', from);
        add(p, 0x307, from);
      } else {
        add(p, rules.lowercase ? unicode::lower(t.code) : t.code, from);
      }
    }
    p.pending.clear();
  }

  /// Reads a code point outside ASCII.
  void read(progress& p, std::uint32_t code, token_span from) const {
    const bert_rules& rules = options_.rules;
    const std::uint8_t c = p.classes[code];
    if (rules.clean && ((c & unicode::control) != 0 || code == 0xfffd)) return;
    const bool ideograph = rules.ideographs && (c & unicode::ideograph) != 0, blank = (c & unicode::space) != 0;
    if (ideograph || blank) settle(p), finish(p);
    if (blank) return;
    if (rules.strip_accents) unicode::append_nfd(p.pending, code, from.first, from.last);
    else p.pending.push_back({code, 0, from.first, from.last});
    if (ideograph) settle(p), finish(p);
  }

  token_table tokens_, inner_;  // all tokens, and those that continue a word, without the prefix
  wordpiece_options options_;
  std::int32_t unknown_ = 0;
  std::array<ascii, 128> ascii_{};
};

}  // namespace isotope::io
