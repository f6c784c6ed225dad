#pragma once
/// The words that isotope-report accepts.
#include "../support/command_words.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace report_program {

inline constexpr std::string_view program = "isotope-report";

inline constexpr support::flag_meaning flag_meanings[] = {
    {"--out", "FILE", "the page to write, also as -o"},
    {"--version", "", "what the program was built from"},
    {"--help", "", "this text"},
};

inline std::string help_text() {
  return "isotope-report run.jsonl... --out page.html   makes one HTML page of the JSON lines of training runs, side by side\n\n" +
         support::list_of_flags(flag_meanings, 14) +
         "\nThe lines are those of isotope-train --json. The page loads nothing, and its figures are those of the lines. Lines of unknown "
         "events\n"
         "are left out, and so is a last line that was cut short; any other line that is no event is an error.\n";
}

/// @error as support::read_flags
inline isotope::result<support::command_words> read_command(std::vector<std::string> words) {
  for (std::string& w : words)
    if (w == "-o") w = "--out";
  support::command_words c;
  if (auto r = support::read_flags(words, flag_meanings, c); !r) return std::move(r).error();
  return c;
}

}  // namespace report_program
