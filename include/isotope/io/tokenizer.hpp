#pragma once
/// Texts to token ids and back, with the ids of the libraries for which a vocabulary was made: byte-level BPE of GPT-2, Llama 3 and Qwen, and WordPiece of
/// BERT. open_tokenizer (tokenizer_file.hpp) reads one from files.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/byte_pair.hpp>
#include <isotope/io/tokenizer_parts.hpp>
#include <isotope/io/wordpiece.hpp>

namespace isotope::io {

/// Whether special tokens that are written in a text become their ids. `plain` is for text of others, who must not write them.
enum class specials : std::uint8_t { parse, plain };
/// What happens with more ids than the limit.
enum class over_limit : std::uint8_t { cut, refuse };

struct encode_options {
  specials special = specials::parse;
  bool framed = true;                                // with the tokens that the tokenizer puts around a text, such as [CLS] and [SEP]
  std::size_t limit = static_cast<std::size_t>(-1);  // of ids, those of the frame included
  over_limit over = over_limit::cut;                 // takes ids off the end of the text; of a pair, off the longer text
  bool spans = false;                                // whether encoding::spans is wanted
};

/// The ids of a text or of two.
struct encoding {
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> types;  // 0 or 1 for each id: to which of two texts it belongs
  std::vector<token_span> spans;    // the bytes of the text from which each id was made; {0, 0} for those of the frame
  std::size_t cut = 0;              // how many ids were taken off
};

class tokenizer {
 public:
  using model = std::variant<byte_pair, wordpiece>;

  /// @param added  ids must be those of the model's token of the same content, if there is one, and no other's
  /// @param nfc    a byte_pair model gets the text in NFC
  /// @error bad_format naming the added token: empty content, content or id of another token
  static result<tokenizer> make(model m, std::vector<added_token> added, frame around, bool nfc, const std::string& where) {
    tokenizer t(std::move(m));
    t.frame_ = std::move(around);
    t.nfc_ = nfc;
    t.size_ = t.tokens().size();
    std::vector<std::pair<std::string, std::int32_t>> raw, raw_plain, normal, normal_plain;
    std::sort(added.begin(), added.end(), [](const added_token& a, const added_token& b) { return a.id < b.id; });
    const std::size_t limit = 2 * (static_cast<std::size_t>(t.size_) + added.size()) + 1024;
    for (std::size_t i = 0; i < added.size(); ++i) {
      added_token& a = added[i];
      const std::string_view there = t.tokens().bytes_of(a.id);
      const char* problem = a.content.empty()                                                              ? "is empty"
                            : a.id < 0 || static_cast<std::size_t>(a.id) >= limit                          ? "lies far from the other ids"
                            : (!there.empty() && there != a.content) || (i > 0 && added[i - 1].id == a.id) ? "has the id of another token"
                                                                                                           : nullptr;
      if (problem != nullptr)
        return fail(errc::bad_format, "the added token " + json_string(a.content) + " with the id " + std::to_string(a.id) + " " + problem,
                    where, "give the file as its trainer wrote it");
      t.size_ = std::max(t.size_, a.id + 1);
      std::string content = a.normalized && nfc ? io::nfc(a.content, false).text : a.content;
      if (!a.special) (a.normalized ? normal_plain : raw_plain).push_back({content, a.id});
      (a.normalized ? normal : raw).push_back({std::move(content), a.id});
    }
    t.added_ = std::move(added);
    std::vector<std::string_view> contents;
    for (const added_token& a : t.added_) contents.push_back(a.content);
    std::sort(contents.begin(), contents.end());
    if (const auto twice = std::adjacent_find(contents.begin(), contents.end()); twice != contents.end())
      return fail(errc::bad_format, "the added token " + json_string(*twice) + " stands twice", where,
                  "give the file as its trainer wrote it");
    t.finders_[0] = {token_finder(std::move(raw)), token_finder(std::move(normal))};
    t.finders_[1] = {token_finder(std::move(raw_plain)), token_finder(std::move(normal_plain))};
    return t;
  }

  /// One more than the largest id.
  std::int32_t size() const { return size_; }
  const std::vector<added_token>& added() const { return added_; }
  const frame& around() const { return frame_; }

  /// The id of a token by its bytes (of a WordPiece with its prefix), or -1.
  std::int32_t id_of(std::string_view token) const {
    for (const added_token& a : added_)
      if (a.content == token) return a.id;
    return tokens().find(token);
  }

  /// Converts a text to ids. Any text has ids, also one that is not UTF-8.
  ///
  /// @error invalid_argument: more ids than the limit, if they are to be refused; a limit below the size of the frame
  result<encoding> encode(std::string_view text, const encode_options& o = {}) const { return framed(frame_.single, text, {}, o); }

  /// Converts two texts that belong together, such as a question and an answer. @error as encode
  result<encoding> encode_pair(std::string_view first, std::string_view second, const encode_options& o = {}) const {
    return framed(frame_.pair, first, second, o);
  }

  /// The number of ids of a text, with its frame.
  std::size_t count(std::string_view text, specials special = specials::parse) const {
    auto all = encode(text, {.special = special});
    return all ? all->ids.size() : 0;
  }

  /// Converts ids to text. Bytes that are not UTF-8 become U+FFFD after all ids are put together.
  ///
  /// @param keep_specials  whether special tokens are written
  /// @error invalid_argument: an id that no token has
  result<std::string> decode(std::span<const std::int32_t> ids, bool keep_specials = true) const {
    std::string bytes, text;
    bool starts = true;
    for (const std::int32_t id : ids)
      if (auto r = append(id, keep_specials, starts, bytes); !r) return std::move(r).error();
    take_characters(bytes, text, true);
    return text;
  }

 private:
  friend class stream_decoder;
  explicit tokenizer(model m) : model_(std::move(m)) {}

  const token_table& tokens() const {
    return std::visit([](const auto& m) -> const token_table& { return m.tokens(); }, model_);
  }

  /// Appends what an id adds to a text; `starts` says whether none came before.
  result<void> append(std::int32_t id, bool keep_specials, bool& starts, std::string& out) const {
    const auto a = std::lower_bound(added_.begin(), added_.end(), id, [](const added_token& t, std::int32_t i) { return t.id < i; });
    const bool is_added = a != added_.end() && a->id == id;
    std::string_view bytes = is_added ? std::string_view(a->content) : tokens().bytes_of(id);
    if (bytes.empty())
      return fail(errc::invalid_argument,
                  "the id " + std::to_string(id) + " is none of the " + std::to_string(size_) + " of the vocabulary", "decode",
                  "give ids that this tokenizer made");
    if (is_added && a->special && !keep_specials) return {};
    if (const auto* words = std::get_if<wordpiece>(&model_)) {
      const std::string& prefix = words->options().prefix;
      // Marks that follow a word without a blank, as the library of reference decodes.
      const auto joins = [&] {
        for (const std::string_view mark : {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"})
          if (bytes.starts_with(mark)) return true;
        return false;
      };
      if (!starts && bytes.starts_with(prefix)) bytes.remove_prefix(prefix.size());
      else if (!starts && !(words->options().clean_up && joins())) out += ' ';
    }
    starts = false;
    out += bytes;
    return {};
  }

  void encode_plain(std::string_view text, std::size_t first, bool spans, encoding& out) const {
    if (const auto* words = std::get_if<wordpiece>(&model_)) return words->encode(text, out.ids, spans ? &out.spans : nullptr, first);
    std::size_t at = first;
    const std::size_t before = out.ids.size();
    std::get<byte_pair>(model_).encode(text, out.ids);
    for (std::size_t i = before; spans && i < out.ids.size(); ++i) {
      const std::size_t size = tokens().bytes_of(out.ids[i]).size();
      out.spans.push_back({at, at + size});
      at += size;
    }
  }

  /// Calls `plain(text, first byte)` for what lies between tokens of a finder, and appends the ids of these.
  template <class Plain> void between(const token_finder& finder, std::string_view text, bool spans, encoding& out, Plain&& plain) const {
    for (std::size_t at = 0; at < text.size();) {
      const auto [next, size, id] = finder.next(text, at);
      if (next > at) plain(text.substr(at, next - at), at);
      if (size != 0) {
        out.ids.push_back(id);
        if (spans) out.spans.push_back({next, next + size});
      }
      at = next + size;
    }
  }

  encoding raw(std::string_view text, const encode_options& o) const {
    encoding out;
    const auto& [before, after] = finders_[o.special == specials::plain ? 1 : 0];
    between(before, text, o.spans, out, [&](std::string_view part, std::size_t first) {
      const std::size_t count = out.spans.size();
      normal_text normal;
      if (nfc_ && unicode::nfc_may_change(part)) normal = io::nfc(part, o.spans);
      const bool changed = !normal.text.empty();
      between(after, changed ? std::string_view(normal.text) : part, o.spans, out,
              [&](std::string_view piece, std::size_t at) { encode_plain(piece, at, o.spans, out); });
      for (std::size_t i = count; i < out.spans.size(); ++i) {  // from bytes of the normal text to bytes of the given one
        token_span& s = out.spans[i];
        if (changed && s.first < s.last) s = {normal.from[s.first].first, normal.from[s.last - 1].last};
        s = {first + s.first, first + s.last};
      }
    });
    return out;
  }

  result<encoding> framed(const std::vector<frame_part>& parts, std::string_view first, std::string_view second,
                          const encode_options& o) const {
    using kind = frame_part::kind;
    const bool two = std::any_of(parts.begin(), parts.end(), [](const frame_part& p) { return p.is == kind::second_text; });
    encoding texts[2] = {raw(first, o), two ? raw(second, o) : encoding{}};
    std::size_t around = 0;
    for (const frame_part& p : parts) around += o.framed && p.is == kind::token ? 1 : 0;
    std::size_t sizes[2] = {texts[0].ids.size(), texts[1].ids.size()};
    const std::size_t all = sizes[0] + sizes[1] + around;
    encoding out;
    if (all > o.limit) {
      const auto refuse = [&](const std::string& what) {
        return fail(errc::invalid_argument, what + std::to_string(o.limit), "encode", "raise the limit, or shorten the text");
      };
      if (o.over == over_limit::refuse) return refuse("the text has " + std::to_string(all) + " ids, and the limit is ");
      if (around > o.limit) return refuse("the tokens around a text are " + std::to_string(around) + ", and the limit is ");
      const std::size_t room = o.limit - around;
      std::size_t &shorter = sizes[sizes[0] > sizes[1] ? 1 : 0], &longer = sizes[sizes[0] > sizes[1] ? 0 : 1];
      shorter = std::min(shorter, room / 2);
      longer = room - shorter;
      out.cut = all - o.limit;
    }
    for (const frame_part& p : parts) {
      if (p.is == kind::token) {
        if (!o.framed) continue;
        out.ids.push_back(p.id);
        if (o.spans) out.spans.push_back({});
      } else {
        const std::size_t i = p.is == kind::second_text ? 1 : 0;
        texts[i].ids.resize(sizes[i]);
        out.ids.insert(out.ids.end(), texts[i].ids.begin(), texts[i].ids.end());
        if (o.spans)
          out.spans.insert(out.spans.end(), texts[i].spans.begin(), texts[i].spans.begin() + static_cast<std::ptrdiff_t>(sizes[i]));
      }
      out.types.resize(out.ids.size(), p.type);
    }
    return out;
  }

  model model_;
  std::vector<added_token> added_;  // by id
  frame frame_;
  bool nfc_ = false;
  std::int32_t size_ = 0;
  struct finders {
    token_finder raw, normalized;
  };
  finders finders_[2];  // for specials::parse and specials::plain
};

/// Decodes ids one by one. A piece holds only complete characters; together the pieces are what tokenizer::decode returns.
class stream_decoder {
 public:
  explicit stream_decoder(const tokenizer& t, bool keep_specials = true) : tokenizer_(t), keep_specials_(keep_specials) {}

  /// Returns the characters that the id completes. @error invalid_argument: an id that no token has
  result<std::string> add(std::int32_t id) {
    if (auto r = tokenizer_.append(id, keep_specials_, starts_, bytes_); !r) return std::move(r).error();
    std::string text;
    take_characters(bytes_, text, false);
    return text;
  }

  /// Returns what is left: U+FFFD if the last character is incomplete.
  std::string finish() {
    std::string text;
    take_characters(bytes_, text, true);
    starts_ = true;
    return text;
  }

 private:
  const tokenizer& tokenizer_;
  bool keep_specials_, starts_ = true;
  std::string bytes_;
};

}  // namespace isotope::io
