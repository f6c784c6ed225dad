#pragma once
/// The words that isotope-embed accepts.
#include "../support/command_words.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace embed_program {

inline constexpr std::string_view program = "isotope-embed";

inline constexpr support::flag_meaning flag_meanings[] = {
    {"--model", "DIR", "the folder of a sentence embedding model"},
    {"--out", "FILE",
     "where vectors are written, also as -o: FILE.npy holds a matrix, any other file JSON lines; default: JSON lines on stdout"},
    {"--truncate", "", "a text of more tokens than the model's limit loses its end: the default"},
    {"--refuse", "", "a text of more tokens than the model's limit is an error"},
    {"--plain", "", "special tokens that are written in a text are text"},
    {"--similarities", "", "print the similarity of every text with every other, and no vectors"},
    {"--tokens", "N", "tokens of the largest run; default 0: 1024, or 16384 on gpu backends"},
    {"--threads", "N", "0: as many as the machine has; gpu backends take none"},
    {"--device", "NAME", "part of a device's name, its index, or a kind; default: the fastest"},
    {"--help", "", "this text"},
    {"--version", "", "what this program was built from"},
};

inline std::string help_text() {
  return "isotope-embed --model DIR [FILE] [-o FILE]   embeds each line of a text, of standard input without FILE\n\n" +
         support::list_of_flags(flag_meanings, 18);
}

/// @error as support::read_flags
inline isotope::result<support::command_words> read_command(std::vector<std::string> words) {
  for (std::string& w : words)
    if (w == "-o") w = "--out";
  support::command_words c;
  if (auto r = support::read_flags(words, flag_meanings, c); !r) return std::move(r).error();
  return c;
}

}  // namespace embed_program
