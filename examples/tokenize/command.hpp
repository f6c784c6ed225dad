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
    {"--plain", "", "encode, shards: special tokens that are written in the text are text"},
    {"--no-frame", "", "encode: without the tokens that the tokenizer puts around a text"},
    {"--limit", "N", "encode: at most N ids; what is more is cut off"},
    {"--refuse", "", "encode: a text of more ids than the limit is an error"},
    {"--skip-specials", "", "decode: without special tokens"},
    {"--size", "N", "train: tokens to make, the 256 bytes included; default 8192"},
    {"--least", "N", "train: how often a pair must stand in the text to become a token; default 2"},
    {"--pattern", "NAME", "train: how texts are split, as by gpt2, llama3 or qwen2; default gpt2"},
    {"--special", "TOKEN", "train: a special token, may be given several times; default <|endoftext|>", true},
    {"--out", "FILE", "train: the tokenizer.json to write; shards: the folder to make"},
    {"--tokenizer", "TOKENIZER", "shards: makes the ids"},
    {"--data", "FILE", "shards: a text, may be given several times; words without a flag are texts, too", true},
    {"--split", "WHERE",
     "shards: what ends a document besides the end of a file: file (nothing), line, paragraph (an empty line), token; default file"},
    {"--end-token", "TOKEN", "shards: the token that ends every document; default <|endoftext|>"},
    {"--shard-tokens", "N", "shards: most tokens of a shard; default: such that there are some dozens of shards"},
    {"--validation", "PART", "shards: the part of the shards that is for validation, in [0, 1); default 0.05, at least one shard"},
    {"--seed", "N", "shards: chooses the shards for validation; default 1"},
    {"--version", "", "what the program was built from"},
    {"--help", "", "this text"},
};

using command = support::command_words;

inline std::string help_text() {
  const std::string commands =
      "isotope-tokenize encode TOKENIZER [FILE]    prints the ids of a text\n"
      "isotope-tokenize decode TOKENIZER [FILE]    prints the text of ids\n"
      "isotope-tokenize train FILE... --out FILE   makes a byte-level BPE tokenizer of texts\n"
      "isotope-tokenize shards --tokenizer TOKENIZER --data FILE... --out FOLDER\n"
      "                                            makes token shards of texts, for isotope-train --data FOLDER\n"
      "isotope-tokenize check FOLDER               compares token shards with the hashes of their manifest\n\n"
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
