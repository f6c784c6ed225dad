#pragma once
/// `shards` and `check`: texts to token shards, and whether shards are as they were written.
#include "command.hpp"

#include <isotope/io/shard_dataset.hpp>
#include <isotope/io/text_shards.hpp>

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tokenize_program {

/// What a folder of shards has, in words.
inline std::string summary_of(const isotope::io::shard_manifest& m) {
  const auto part = [&](bool validation) {
    return std::to_string(m.tokens(validation)) + " tokens in " + std::to_string(m.count(validation)) +
           (validation ? " for validation" : " shards for training");
  };
  return part(false) + ", " + part(true) + ", ids of " + std::to_string(8 * m.bytes_per_token()) + " bits, vocabulary " +
         std::to_string(m.vocabulary);
}

/// Reads a number that takes the whole text.
template <class T> bool parse_number(const std::string& text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

/// @error missing_value, invalid_argument; as write_text_shards
inline isotope::result<std::string> make_shards(const command& c) {
  using isotope::errc, isotope::fail;
  isotope::io::text_shard_options o;
  std::vector<std::string> files;
  for (auto [at, end] = c.values.equal_range(std::string_view("--data")); at != end; ++at) files.push_back(at->second);
  files.insert(files.end(), c.files.begin(), c.files.end());
  const std::pair<const char*, bool> needed[] = {
      {"--tokenizer", c.has("--tokenizer")}, {"--data", !files.empty()}, {"--out", c.has("--out")}};
  for (const auto& [flag, given] : needed)
    if (!given)
      return fail(errc::missing_value, "shards needs it", flag, "isotope-tokenize shards --tokenizer FILE --data FILE... --out FOLDER");
  const auto tokens = c.whole("--shard-tokens", 0, 2, isotope::io::most_shard_tokens);
  if (!tokens) return tokens.error();
  o.shard_tokens = *tokens;
  if (const std::string given = c.get("--validation"); c.has("--validation"))
    if (!parse_number(given, o.validation) || !(o.validation >= 0 && o.validation < 1))
      return fail(errc::invalid_argument, "'" + given + "' is not a number in [0, 1)", "--validation", "give one, 0 for no validation");
  if (const std::string given = c.get("--seed"); c.has("--seed") && !parse_number(given, o.seed))
    return fail(errc::invalid_argument, "'" + given + "' is not a whole number of 64 bits", "--seed", "give one");
  const std::string split = c.get("--split", "file");
  using isotope::io::document_end;
  if (split == "line") o.end = document_end::line;
  else if (split == "paragraph") o.end = document_end::paragraph;
  else if (split == "token") o.end = document_end::token;
  else if (split != "file") return fail(errc::invalid_argument, "no split '" + split + "'", "--split", "file, line, paragraph or token");
  o.end_token = c.get("--end-token", o.end_token);
  o.plain = c.has("--plain");
  auto done = isotope::io::write_text_shards(c.get("--tokenizer"), files, c.get("--out"), o);
  if (!done) return std::move(done).error();
  return std::to_string(done->documents) + " documents, " + std::to_string(done->bytes) + " bytes: " + summary_of(done->manifest) + "\n";
}

/// @error missing_value; as shard_dataset::open and verify
inline isotope::result<std::string> check_shards(const command& c) {
  if (c.files.size() != 1)
    return isotope::fail(isotope::errc::missing_value, "check takes one folder", "command line", "isotope-tokenize check FOLDER");
  const auto data = isotope::io::shard_dataset::open(c.files[0], 1);
  if (!data) return data.error();
  if (auto r = data->verify(); !r) return std::move(r).error();
  return summary_of(data->manifest()) + ", all hashes right\n";
}

}  // namespace tokenize_program
