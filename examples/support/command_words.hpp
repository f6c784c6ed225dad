#pragma once
/// The words of programs that take a command, flags and files, and have no settings in files or variables: isotope-conform, isotope-tokenize.
#include <isotope/config/suggest.hpp>
#include <isotope/core/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace support {

struct flag_meaning {
  std::string_view flag, value, meaning;  // without a value it is a switch
  bool several = false;                   // it may be given more than once
};

/// A command, its flags with their values, and its files.
struct command_words {
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

/// A line for each flag; meanings begin at column `width`.
inline std::string list_of_flags(std::span<const flag_meaning> flags, std::size_t width) {
  std::string s;
  for (const flag_meaning& f : flags) {
    std::string left = "  " + std::string(f.flag) + (f.value.empty() ? "" : " " + std::string(f.value));
    left.resize(std::max(left.size() + 1, width), ' ');
    s += left + std::string(f.meaning) + "\n";
  }
  return s;
}

/// Adds the words to c: flags with their values, written as `--flag value` or `--flag=value`, and files.
/// @error unknown_key with a suggestion, missing_value; invalid_argument for a flag that stands twice, and a switch with a value
inline isotope::result<void> read_flags(std::span<const std::string> words, std::span<const flag_meaning> flags, command_words& c) {
  using isotope::errc, isotope::fail;
  for (std::size_t at = 0; at < words.size(); ++at) {
    std::string word = words[at];
    if (!word.starts_with("--")) {
      c.files.push_back(word);
      continue;
    }
    std::string value;
    const auto equals = word.find('=');
    const bool joined = equals != word.npos;
    if (joined) value = word.substr(equals + 1), word.resize(equals);
    const auto found = std::find_if(flags.begin(), flags.end(), [&](const flag_meaning& f) { return f.flag == word; });
    if (found == flags.end()) {
      std::vector<std::string> known;
      for (const flag_meaning& f : flags) known.emplace_back(f.flag);
      return fail(errc::unknown_key, "no flag '" + word + "'", "command line",
                  isotope::config::did_you_mean(word, known, "--help lists them"));
    }
    if (c.has(word) && !found->several) return fail(errc::invalid_argument, word + " stands twice", "command line", "give it once");
    if (!found->value.empty() && !joined) {
      if (at + 1 == words.size()) return fail(errc::missing_value, "needs a value: " + std::string(found->value), word, "add one");
      value = words[++at];
    }
    if (found->value.empty() && joined)
      return fail(errc::invalid_argument, "is a switch and takes no value", word, "leave out '" + value + "'");
    c.values.emplace(word, value);
  }
  return {};
}

}  // namespace support
