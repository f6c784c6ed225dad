#pragma once
/// The words that isotope-tokenize accepts.
#include "../support/command_words.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tokenize_program {

inline constexpr std::string_view program = "isotope-tokenize";

inline constexpr support::flag_meaning flag_meanings[] = {
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
    {"--special", "TOKEN", "train: a special token, may be given several times; default <|endoftext|>", true},
    {"--out", "FILE", "train: the tokenizer.json to write"},
    {"--help", "", "this text"},
};

using command = support::command_words;

inline std::string help_text() {
  const std::string commands =
      "isotope-tokenize encode TOKENIZER [FILE]    prints the ids of a text\n"
      "isotope-tokenize decode TOKENIZER [FILE]    prints the text of ids\n"
      "isotope-tokenize train FILE... --out FILE   makes a byte-level BPE tokenizer of texts\n\n"
      "TOKENIZER is a tokenizer.json, a vocab.txt, or a folder with one of them or with vocab.json and merges.txt. Without FILE, standard "
      "input is read.\n\n";
  return commands + support::list_of_flags(flag_meanings, 20);
}

/// The first word without dashes is the command. @error as support::read_flags
inline isotope::result<command> read_command(const std::vector<std::string>& words) {
  command c;
  if (auto r = support::read_flags(words, flag_meanings, c); !r) return r.error();
  if (!c.files.empty()) {
    c.name = std::move(c.files.front());
    c.files.erase(c.files.begin());
  }
  return c;
}

}  // namespace tokenize_program
