#pragma once
/// Opens tokenizers from the files that they are published in: tokenizer.json; vocab.json and merges.txt; vocab.txt. What a file asks for is done exactly or
/// refused by name.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/tokenizer.hpp>
#include <isotope/io/tokenizer_json.hpp>

namespace isotope::io {

namespace detail {

/// The lines of a text, without their ends. An empty last one is none.
inline std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace detail

/// Makes a tokenizer of GPT-2's kind from the texts of vocab.json and merges.txt. <|endoftext|> is special if the vocabulary has it.
///
/// @error bad_format with the file and what is wrong
inline result<tokenizer> tokenizer_of_merges(std::string_view vocab, const std::string& vocab_where, std::string_view merges,
                                             const std::string& merges_where) {
  if (vocab.size() > detail::most_tokenizer_bytes || merges.size() > detail::most_tokenizer_bytes)
    return detail::tokenizer_too_large(vocab.size() > merges.size() ? vocab_where : merges_where);
  auto root = parse_json(vocab, vocab_where, detail::most_tokenizer_values);
  if (!root) return std::move(root).error();
  std::vector<added_token> added;
  constexpr std::string_view end_of_text = "<|endoftext|>";
  auto words = detail::vocabulary_reader::read(*root, {}, vocab_where);
  if (!words) return std::move(words).error();
  if (const std::int32_t id = words->tokens.find(end_of_text); id >= 0) added.push_back({std::string(end_of_text), id});
  std::vector<merge> pairs;
  int number = 0;
  for (const std::string_view line : detail::lines_of(merges)) {
    ++number;
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    auto pair = words->merge_of(line, merges_where, number);
    if (!pair) return std::move(pair).error();
    pairs.push_back(*pair);
  }
  auto model = byte_pair::make(std::move(words->tokens), pairs, split_rule::gpt2, false, merges_where);
  if (!model) return std::move(model).error();
  return tokenizer::make(*std::move(model), std::move(added), {}, false, vocab_where);
}

/// Opens vocab.json and merges.txt. @error as read_file and tokenizer_of_merges
inline result<tokenizer> open_tokenizer(const std::string& vocab, const std::string& merges) {
  auto first = read_file(vocab);
  if (!first) return std::move(first).error();
  auto second = read_file(merges);
  if (!second) return std::move(second).error();
  return tokenizer_of_merges(first->text(), vocab, second->text(), merges);
}

/// Makes a tokenizer of BERT's kind from the text of vocab.txt: a token per line. [CLS] and [SEP] are put around a text if the vocabulary has them.
///
/// @error bad_format with the file and what is wrong
inline result<tokenizer> tokenizer_of_words(std::string_view vocab, const std::string& where, const wordpiece_options& options = {}) {
  if (vocab.size() > detail::most_tokenizer_bytes) return detail::tokenizer_too_large(where);
  std::vector<named_token> tokens;
  std::vector<added_token> added;
  std::int32_t cls = -1, sep = -1;
  for (const std::string_view line : detail::lines_of(vocab)) {
    const auto id = static_cast<std::int32_t>(tokens.size());
    for (std::size_t at = 0; at < line.size();) {
      const unicode::point p = unicode::decode(line.data() + at, line.data() + line.size());
      if (p.bytes == 0)
        return fail(errc::bad_format, "is not UTF-8", where + ":" + std::to_string(id + 1), "give the vocabulary as its trainer wrote it");
      at += p.bytes;
    }
    tokens.push_back({std::string(line), id});
    if (line == "[CLS]") cls = id;
    if (line == "[SEP]") sep = id;
    for (const std::string_view special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
      if (line == special) added.push_back({std::string(line), id});
  }
  auto model = wordpiece::make(tokens, options, where);
  if (!model) return std::move(model).error();
  frame around;
  if (cls >= 0 && sep >= 0) {
    using kind = frame_part::kind;
    around.single = {{kind::token, cls, 0}, {kind::first_text, -1, 0}, {kind::token, sep, 0}};
    around.pair = around.single;
    around.pair.insert(around.pair.end(), {{kind::second_text, -1, 1}, {kind::token, sep, 1}});
  }
  return tokenizer::make(*std::move(model), std::move(added), std::move(around), false, where);
}

/// Opens a tokenizer: a file tokenizer.json or vocab.txt, or a folder that has tokenizer.json, vocab.json with merges.txt, or vocab.txt.
///
/// @error as read_file and tokenizer_from_json; not_found: the folder has none of these
inline result<tokenizer> open_tokenizer(const std::string& path) {
  std::string file = path;
  if (detail::is_folder(path)) {
    const auto in_folder = [&](const char* name) { return path + "/" + name; };
    if (detail::is_there(in_folder("tokenizer.json"))) file = in_folder("tokenizer.json");
    else if (detail::is_there(in_folder("merges.txt"))) return open_tokenizer(in_folder("vocab.json"), in_folder("merges.txt"));
    else if (detail::is_there(in_folder("vocab.txt"))) file = in_folder("vocab.txt");
    else
      return fail(errc::not_found, "the folder has no tokenizer", path,
                  "put tokenizer.json, vocab.json with merges.txt, or vocab.txt there");
  }
  auto bytes = read_file(file);
  if (!bytes) return std::move(bytes).error();
  return file.ends_with(".txt") ? tokenizer_of_words(bytes->text(), file) : tokenizer_from_json(bytes->text(), file);
}

}  // namespace isotope::io
