#pragma once
/// Byte-level byte-pair encoding: a text is split into pieces, and within a piece neighbouring tokens are merged, the pair of the lowest rank first.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/byte_pair_split.hpp>
#include <isotope/io/token_table.hpp>

namespace isotope::io {

/// The characters by which files write the 256 bytes: printable ones stand for themselves, the others are U+0100, U+0101 and so on.
class byte_alphabet {
 public:
  static constexpr bool printable(std::uint32_t b) {
    return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || (b >= 0xae && b <= 0xff);
  }
  constexpr byte_alphabet() {
    std::uint32_t next = 0x100;
    for (std::uint32_t b = 0; b < 256; ++b) {
      codes_[b] = printable(b) ? b : next++;
      bytes_[codes_[b]] = static_cast<std::int16_t>(b);
    }
  }
  constexpr std::uint32_t code_of(unsigned char byte) const { return codes_[byte]; }

  /// The bytes that a string of a file stands for; nothing if it has another character.
  std::optional<std::string> bytes_of(std::string_view text) const {
    std::string bytes;
    for (std::size_t at = 0; at < text.size();) {
      const unicode::point p = unicode::decode(text.data() + at, text.data() + text.size());
      if (p.bytes == 0 || p.code >= bytes_.size() || bytes_[p.code] < 0) return {};
      bytes += static_cast<char>(bytes_[p.code]);
      at += p.bytes;
    }
    return bytes;
  }
  std::string text_of(std::string_view bytes) const {
    std::string text;
    for (const char b : bytes) unicode::append(text, code_of(static_cast<unsigned char>(b)));
    return text;
  }

 private:
  std::array<std::uint32_t, 256> codes_{};
  std::array<std::int16_t, 0x144> bytes_ = [] {
    std::array<std::int16_t, 0x144> none{};
    for (auto& n : none) n = -1;
    return none;
  }();
};
inline constexpr byte_alphabet byte_characters;

/// A pair of tokens that become one. Its place in the list is its rank.
struct merge {
  std::int32_t left = 0, right = 0;
};

/// A vocabulary and its merges. Encoding allocates nothing but ids for pieces of up to 64 bytes, takes time n log n in those of n bytes, and is safe on many threads.
class byte_pair {
 public:
  /// @param merges  in the order of their ranks
  /// @param whole   a piece that is a token is never split (`ignore_merges`)
  /// @error bad_format naming the token or the merge: a byte without a token, a merge of or into an unknown token, a merge that stands twice
  static result<byte_pair> make(token_table tokens, const std::vector<merge>& merges, split_rule rule, bool whole,
                                const std::string& where) {
    byte_pair m;
    m.rule_ = rule;
    m.tokens_ = std::move(tokens);
    for (int b = 0; b < 256; ++b) {
      const char byte = static_cast<char>(b);
      m.bytes_[static_cast<std::size_t>(b)] = m.tokens_.find({&byte, 1});
      if (m.bytes_[static_cast<std::size_t>(b)] < 0)
        return fail(errc::bad_format, "the byte " + std::to_string(b) + " has no token", where,
                    "give a byte-level vocabulary with all 256 bytes");
    }
    if (auto r = m.add(merges, where); !r) return std::move(r).error();
    if (!whole) m.becomes_ = std::make_unique<std::atomic<fate>[]>(static_cast<std::size_t>(m.tokens_.size()));
    return m;
  }

  split_rule rule() const { return rule_; }
  const token_table& tokens() const { return tokens_; }

  /// Appends the ids of a text. Their bytes in a row are the text.
  void encode(std::string_view text, std::vector<std::int32_t>& ids) const {
    switch (rule_) {
      case split_rule::gpt2: return encode_by<split_rule::gpt2>(text, ids);
      case split_rule::llama3: return encode_by<split_rule::llama3>(text, ids);
      case split_rule::qwen2: return encode_by<split_rule::qwen2>(text, ids);
    }
  }

 private:
  static constexpr std::uint32_t no_rank = 0xffffffff;
  static constexpr std::size_t short_piece = 64;
  enum class fate : std::uint8_t { unknown, whole, split };
  struct slot {
    std::uint64_t pair = ~std::uint64_t{0};
    std::uint32_t rank = no_rank;
    std::int32_t made = -1;
  };

  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
  }
  std::size_t home_of(std::uint64_t pair) const { return static_cast<std::size_t>(pair * 0x9e3779b97f4a7c15u >> shift_); }

  /// Where a pair stands in pairs_, or would stand.
  std::size_t place_of(std::int32_t left, std::int32_t right) const {
    const std::uint64_t pair = key_of(left, right);
    std::size_t at = home_of(pair);
    while (pairs_[at].pair != pair && pairs_[at].made >= 0) at = (at + 1) & (pairs_.size() - 1);
    return at;
  }
  const slot& pair_of(std::int32_t left, std::int32_t right) const { return pairs_[place_of(left, right)]; }

  result<void> add(const std::vector<merge>& merges, const std::string& where) {
    pairs_.assign(std::bit_ceil(2 * merges.size() + 2), {});
    shift_ = 64 - std::countr_zero(pairs_.size());
    std::string both;
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      const auto [left, right] = merges[rank];
      both.assign(tokens_.bytes_of(left)).append(tokens_.bytes_of(right));
      const auto refuse = [&](const char* what) {
        return fail(errc::bad_format,
                    "merge " + std::to_string(rank + 1) + ", of '" + byte_characters.text_of(tokens_.bytes_of(left)) + "' and '" +
                        byte_characters.text_of(tokens_.bytes_of(right)) + "', " + what,
                    where, "give merges and vocabulary of one tokenizer");
      };
      if (tokens_.bytes_of(left).empty() || tokens_.bytes_of(right).empty()) return refuse("names a token that stands for no bytes");
      const std::int32_t made = tokens_.find(both);
      if (made < 0) return refuse("makes a token that the vocabulary lacks");
      slot& s = pairs_[place_of(left, right)];
      if (s.made >= 0) return refuse("stands twice");
      s = {key_of(left, right), static_cast<std::uint32_t>(rank), made};
    }
    return {};
  }

  /// Whether a piece with the bytes of a token becomes that token by its merges. Found out once per token; threads that do so at the same time find the
  /// same.
  bool stays_whole(std::string_view piece, std::int32_t id) const {
    if (becomes_ == nullptr) return true;
    std::atomic<fate>& known = becomes_[static_cast<std::size_t>(id)];
    fate f = known.load(std::memory_order_relaxed);
    if (f == fate::unknown) {
      std::vector<std::int32_t> ids;
      merge_piece(piece, ids);
      f = ids.size() == 1 ? fate::whole : fate::split;
      known.store(f, std::memory_order_relaxed);
    }
    return f == fate::whole;
  }

  template <split_rule Rule> void encode_by(std::string_view text, std::vector<std::int32_t>& ids) const {
    const char *at = text.data(), *const end = at + text.size();
    const piece_scanner<Rule> scanner(unicode::data::get(), end);
    while (at != end) {
      const char* const next = scanner.next(at);
      const std::string_view piece(at, static_cast<std::size_t>(next - at));
      const std::int32_t id = tokens_.find(piece, end);
      if (id >= 0 && stays_whole(piece, id)) ids.push_back(id);
      else merge_piece(piece, ids);
      at = next;
    }
  }

  void merge_piece(std::string_view piece, std::vector<std::int32_t>& ids) const {
    if (piece.size() > short_piece) return merge_long_piece(piece, ids);
    std::array<std::int32_t, short_piece> token;
    std::array<const slot*, short_piece> pair;  // of a token and the next one
    std::size_t count = piece.size();
    for (std::size_t i = 0; i < count; ++i) token[i] = bytes_[static_cast<unsigned char>(piece[i])];
    for (std::size_t i = 0; i + 1 < count; ++i) pair[i] = &pair_of(token[i], token[i + 1]);
    while (count > 1) {
      std::size_t best = 0;
      for (std::size_t i = 1; i + 1 < count; ++i)
        if (pair[i]->rank < pair[best]->rank) best = i;
      if (pair[best]->made < 0) break;
      token[best] = pair[best]->made;
      --count;
      for (std::size_t i = best + 1; i < count; ++i) token[i] = token[i + 1];
      for (std::size_t i = best + 1; i + 1 < count; ++i) pair[i] = pair[i + 1];
      if (best > 0) pair[best - 1] = &pair_of(token[best - 1], token[best]);
      if (best + 1 < count) pair[best] = &pair_of(token[best], token[best + 1]);
    }
    ids.insert(ids.end(), token.begin(), token.begin() + static_cast<std::ptrdiff_t>(count));
  }

  /// The same with a queue of pairs, so that a long piece takes no time n^2.
  void merge_long_piece(std::string_view piece, std::vector<std::int32_t>& ids) const {
    struct part {
      std::int32_t token;
      std::size_t before, next;  // parts
    };
    struct candidate {
      std::uint32_t rank;
      std::size_t at;
      std::int32_t left, right, made;
      bool operator<(const candidate& o) const { return rank != o.rank ? rank > o.rank : at > o.at; }  // the largest comes out first
    };
    const std::size_t size = piece.size();
    std::vector<part> parts(size);
    for (std::size_t i = 0; i < size; ++i) parts[i] = {bytes_[static_cast<unsigned char>(piece[i])], i - 1, i + 1};
    std::priority_queue<candidate> queue;
    const auto consider = [&](std::size_t at) {
      const std::size_t next = parts[at].next;
      if (next >= size) return;
      const slot& s = pair_of(parts[at].token, parts[next].token);
      if (s.made >= 0) queue.push({s.rank, at, parts[at].token, parts[next].token, s.made});
    };
    for (std::size_t i = 0; i + 1 < size; ++i) consider(i);
    while (!queue.empty()) {
      const candidate c = queue.top();
      queue.pop();
      const std::size_t next = parts[c.at].next;
      if (parts[c.at].token != c.left || next >= size || parts[next].token != c.right) continue;  // one of the two was merged with another
      parts[c.at].token = c.made;
      parts[c.at].next = parts[next].next;
      if (parts[next].next < size) parts[parts[next].next].before = c.at;
      parts[next].token = -1;
      if (c.at != 0) consider(parts[c.at].before);
      consider(c.at);
    }
    for (std::size_t i = 0; i < size; i = parts[i].next) ids.push_back(parts[i].token);
  }

  split_rule rule_ = split_rule::gpt2;
  token_table tokens_;
  std::unique_ptr<std::atomic<fate>[]> becomes_;  // by id; null if a token always stays whole
  std::array<std::int32_t, 256> bytes_{};
  std::vector<slot> pairs_;
  int shift_ = 63;
};

}  // namespace isotope::io
