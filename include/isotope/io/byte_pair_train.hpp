#pragma once
/// Trains byte-level byte-pair encoding on a text: again and again, the pair of neighbouring tokens that is the most frequent within pieces becomes a token. Of
/// equally frequent pairs the one with the lower ids is taken, left before right, so that a text always gives the same tokenizer.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/byte_pair.hpp>
#include <isotope/io/json_text.hpp>

namespace isotope::io {

struct byte_pair_training {
  std::int32_t size = 8192;  // tokens to make, the 256 bytes included, without special ones
  std::int64_t least = 2;    // a pair must stand in the text as often
  split_rule rule = split_rule::gpt2;
};

/// The 256 bytes, in the order of their characters in files, and then what each merge made.
struct trained_tokens {
  std::vector<std::string> tokens;  // by id
  std::vector<merge> merges;
  split_rule rule = split_rule::gpt2;
};

namespace detail {

class byte_pair_trainer {
 public:
  explicit byte_pair_trainer(const byte_pair_training& wanted) : options_(wanted) {
    for (std::uint32_t b = 0; b < 256; ++b) order_.push_back(static_cast<unsigned char>(b));
    std::sort(order_.begin(), order_.end(), [](auto a, auto b) { return byte_characters.code_of(a) < byte_characters.code_of(b); });
    for (std::size_t i = 0; i < 256; ++i) id_of_byte_[order_[i]] = static_cast<std::int32_t>(i);
  }

  trained_tokens train(std::string_view text) {
    switch (options_.rule) {
      case split_rule::gpt2: count<split_rule::gpt2>(text); break;
      case split_rule::llama3: count<split_rule::llama3>(text); break;
      case split_rule::qwen2: count<split_rule::qwen2>(text); break;
    }
    trained_tokens made;
    made.rule = options_.rule;
    for (const unsigned char b : order_) made.tokens.emplace_back(1, static_cast<char>(b));
    for (std::size_t w = 0; w < words_.size(); ++w) change(w, 1);
    for (const auto& [pair, use] : pairs_) queue_.push({use.count, pair});
    while (static_cast<std::int32_t>(made.tokens.size()) < options_.size && !queue_.empty()) {
      const auto [times, pair] = queue_.top();
      queue_.pop();
      const auto found = pairs_.find(pair);
      if (found == pairs_.end() || found->second.count != times) continue;  // has changed, and stands in the queue with what it is
      if (times < std::max<std::int64_t>(options_.least, 1)) break;
      const merge m{static_cast<std::int32_t>(pair >> 32), static_cast<std::int32_t>(pair & 0xffffffff)};
      made.tokens.push_back(made.tokens[static_cast<std::size_t>(m.left)] + made.tokens[static_cast<std::size_t>(m.right)]);
      made.merges.push_back(m);
      apply(m, static_cast<std::int32_t>(made.tokens.size()) - 1);
    }
    return made;
  }

 private:
  struct word {
    std::vector<std::int32_t> tokens;
    std::int64_t count = 0;  // in the text
  };
  struct uses {
    std::int64_t count = 0;
    std::vector<std::size_t> words;  // where the pair is or was, some twice
  };
  struct entry {
    std::int64_t count;
    std::uint64_t pair;
    bool operator<(const entry& o) const { return count != o.count ? count < o.count : pair > o.pair; }  // the largest comes out first
  };

  template <split_rule Rule> void count(std::string_view text) {
    std::unordered_map<std::string_view, std::size_t> known;
    const char *at = text.data(), *const end = at + text.size();
    const piece_scanner<Rule> scanner(unicode::data::get(), end);
    while (at != end) {
      const char* const next = scanner.next(at);
      const std::string_view piece(at, static_cast<std::size_t>(next - at));
      const auto [place, added] = known.try_emplace(piece, words_.size());
      if (added) {
        word& w = words_.emplace_back();
        for (const char b : piece) w.tokens.push_back(id_of_byte_[static_cast<unsigned char>(b)]);
      }
      ++words_[place->second].count;
      at = next;
    }
  }

  /// Adds a word's pairs to the counts, or takes them off, and lists the pairs whose counts have changed.
  void change(std::size_t w, int sign) {
    const word& of = words_[w];
    for (std::size_t i = 0; i + 1 < of.tokens.size(); ++i) {
      const std::uint64_t pair =
          std::uint64_t{static_cast<std::uint32_t>(of.tokens[i])} << 32 | static_cast<std::uint32_t>(of.tokens[i + 1]);
      uses& u = pairs_[pair];
      u.count += sign * of.count;
      if (sign > 0 && (u.words.empty() || u.words.back() != w)) u.words.push_back(w);
      changed_.push_back(pair);
    }
  }

  void apply(merge m, std::int32_t made) {
    const std::uint64_t pair = std::uint64_t{static_cast<std::uint32_t>(m.left)} << 32 | static_cast<std::uint32_t>(m.right);
    std::vector<std::size_t> where = std::move(pairs_[pair].words);
    std::sort(where.begin(), where.end());
    where.erase(std::unique(where.begin(), where.end()), where.end());
    changed_.clear();
    for (const std::size_t w : where) {
      change(w, -1);
      std::vector<std::int32_t>& tokens = words_[w].tokens;
      std::size_t kept = 0;
      for (std::size_t i = 0; i < tokens.size(); ++kept) {
        const bool both = i + 1 < tokens.size() && tokens[i] == m.left && tokens[i + 1] == m.right;
        tokens[kept] = both ? made : tokens[i];
        i += both ? 2 : 1;
      }
      tokens.resize(kept);
      change(w, 1);
    }
    std::sort(changed_.begin(), changed_.end());
    changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
    for (const std::uint64_t p : changed_) {
      const auto found = pairs_.find(p);
      if (found->second.count > 0) queue_.push({found->second.count, p});
      else pairs_.erase(found);
    }
  }

  byte_pair_training options_;
  std::vector<unsigned char> order_;  // the bytes by id
  std::array<std::int32_t, 256> id_of_byte_{};
  std::vector<word> words_;
  std::unordered_map<std::uint64_t, uses> pairs_;
  std::priority_queue<entry> queue_;
  std::vector<std::uint64_t> changed_;
};

}  // namespace detail

/// Trains on a text, which may hold any bytes. Stops early when no pair is frequent enough.
///
/// @error invalid_argument: a size below 256 or above 2^24
inline result<trained_tokens> train_byte_pair(std::string_view text, const byte_pair_training& options = {}) {
  if (options.size < 256 || options.size > 1 << 24)
    return fail(errc::invalid_argument, "a vocabulary of " + std::to_string(options.size) + " tokens cannot be made", "size",
                "give a number from 256, the bytes alone, to 16777216");
  return detail::byte_pair_trainer(options).train(text);
}

/// Writes a tokenizer.json that isotope and the library of reference read. Special tokens get the ids after the others.
inline std::string tokenizer_json(const trained_tokens& t, const std::vector<std::string>& specials) {
  const auto quoted = [&](std::string_view bytes) { return json_string(byte_characters.text_of(bytes)); };
  const std::string bytes = R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":)";
  std::string s = R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)";
  for (std::size_t i = 0; i < specials.size(); ++i)
    s += (i == 0 ? "\n" : ",\n") + std::string(R"({"id":)") + std::to_string(t.tokens.size() + i) + R"(,"content":)" +
         json_string(specials[i]) + R"(,"single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true})";
  s += "],\n\"normalizer\":" + std::string(t.rule == split_rule::qwen2 ? R"({"type":"NFC"})" : "null") + ",\n\"pre_tokenizer\":";
  if (t.rule == split_rule::gpt2) s += bytes + "true}";
  else
    s += R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)" + json_string(pattern_of(t.rule)) +
         R"(},"behavior":"Isolated","invert":false},)" + bytes + "false}]}";
  s += ",\n\"post_processor\":" + bytes + "true},\n\"decoder\":" + bytes + "true},\n";
  s += R"("model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,)"
       R"("fuse_unk":false,"byte_fallback":false,"ignore_merges":false,"vocab":{)";
  for (std::size_t i = 0; i < t.tokens.size(); ++i) s += (i == 0 ? "\n" : ",\n") + quoted(t.tokens[i]) + ":" + std::to_string(i);
  s += "},\n\"merges\":[";
  for (std::size_t i = 0; i < t.merges.size(); ++i)
    s += (i == 0 ? "\n[" : ",\n[") + quoted(t.tokens[static_cast<std::size_t>(t.merges[i].left)]) + "," +
         quoted(t.tokens[static_cast<std::size_t>(t.merges[i].right)]) + "]";
  return s + "]}}\n";
}

}  // namespace isotope::io
