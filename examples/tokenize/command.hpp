#pragma once
/// The words that isotope-tokenize accepts.
#include <isotope/config/suggest.hpp>
#include <isotope/core/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tokenize_program {

inline constexpr std::string_view program = "isotope-tokenize";

struct flag_meaning {
  std::string_view flag, value, meaning;  // without a value it is a switch
};
inline constexpr flag_meaning flag_meanings[] = {
    {"--text", "TEXT", "encode: this text instead of a file"},
    {"--lines", "", "encode: each line of the file is a text; decode: each line has the ids of a text"},
    {"--json", "",
     "encode: each line is a text as a JSON string, and becomes an object; decode: each line is an array, and becomes a JSON string"},
    {"--spans", "", "encode --json: the bytes of the text from which each id was made"},
    {"--count", "", "encode: the number of ids alone"},
    {"--plain", "", "encode: special tokens that are written in the text are text"},
    {"--no-frame", "", "encode: without the tokens that the tokenizer puts around a text"},
    {"--limit", "N", "encode: at most N ids; what is more is cut off"},
    {"--refuse", "", "encode: a text of more ids than the limit is an error"},
    {"--skip-specials", "", "decode: without special tokens"},
    {"--size", "N", "train: tokens to make, the 256 bytes included; default 8192"},
    {"--least", "N", "train: how often a pair must stand in the text to become a token; default 2"},
    {"--pattern", "NAME", "train: how texts are split, as by gpt2, llama3 or qwen2; default gpt2"},
    {"--special", "TOKEN", "train: a special token, may be given several times; default <|endoftext|>"},
    {"--out", "FILE", "train: the tokenizer.json to write"},
    {"--help", "", "this text"},
};

/// A command, its flags with their values, and its files.
struct command {
  std::string name;
  std::multimap<std::string, std::string, std::less<>> values;
  std::vector<std::string> files;

  bool has(std::string_view flag) const { return values.contains(flag); }
  std::string get(std::string_view flag, std::string_view otherwise = {}) const {
    const auto found = values.find(flag);
    return found == values.end() ? std::string(otherwise) : found->second;
  }
  /// @error invalid_argument for anything but an integer in [least, most]
  isotope::result<std::int64_t> whole(std::string_view flag, std::int64_t otherwise, std::int64_t least, std::int64_t most) const {
    const auto found = values.find(flag);
    if (found == values.end()) return otherwise;
    std::int64_t x = 0;
    const char *first = found->second.data(), *last = first + found->second.size();
    const auto [end, error] = std::from_chars(first, last, x);
    if (error != std::errc() || end != last || x < least || x > most)
      return isotope::fail(isotope::errc::invalid_argument,
                           "'" + found->second + "' is not a whole number from " + std::to_string(least) + " to " + std::to_string(most),
                           std::string(flag), "give one");
    return x;
  }
};

inline std::string help_text() {
  std::string s =
      "isotope-tokenize encode TOKENIZER [FILE]    prints the ids of a text\n"
      "isotope-tokenize decode TOKENIZER [FILE]    prints the text of ids\n"
      "isotope-tokenize train FILE... --out FILE   makes a byte-level BPE tokenizer of texts\n\n"
      "TOKENIZER is a tokenizer.json, a vocab.txt, or a folder with one of them or with vocab.json and merges.txt. Without FILE, standard "
      "input is read.\n\n";
  for (const flag_meaning& f : flag_meanings) {
    std::string left = "  " + std::string(f.flag) + (f.value.empty() ? "" : " " + std::string(f.value));
    left.resize(std::max<std::size_t>(left.size() + 1, 20), ' ');
    s += left + std::string(f.meaning) + "\n";
  }
  return s;
}

/// @error unknown_key with a suggestion, missing_value
inline isotope::result<command> read_command(const std::vector<std::string>& words) {
  using isotope::errc, isotope::fail;
  command c;
  std::vector<std::string> known;
  for (const flag_meaning& f : flag_meanings) known.emplace_back(f.flag);
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (!word.starts_with("--")) {
      if (c.name.empty()) c.name = word;
      else c.files.push_back(word);
      continue;
    }
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string flag = word.substr(0, equals);
    const auto* const meaning =
        std::find_if(std::begin(flag_meanings), std::end(flag_meanings), [&](const flag_meaning& f) { return f.flag == flag; });
    if (meaning == std::end(flag_meanings))
      return fail(errc::unknown_key, "no flag '" + flag + "'", "command line",
                  isotope::config::did_you_mean(flag, known, "--help lists them"));
    std::string value;
    if (meaning->value.empty()) {
      if (equals != word.size()) return fail(errc::invalid_argument, "takes no value", flag, "leave '" + word.substr(equals) + "' out");
    } else if (equals != word.size()) {
      value = word.substr(equals + 1);
    } else if (++at < words.size()) {
      value = words[at];
    } else {
      return fail(errc::missing_value, "needs a value", flag, "give " + std::string(meaning->value));
    }
    c.values.emplace(flag, value);
  }
  return c;
}

}  // namespace tokenize_program
