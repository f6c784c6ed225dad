#pragma once
/// The files of a tokenizer as they are, to keep them beside what was made with them.
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/hash.hpp>

namespace isotope::io {

/// A tokenizer's files, by the names under which open_tokenizer finds them in a folder.
struct tokenizer_text {
  std::vector<std::pair<std::string, std::string>> files;  // name, contents

  std::uint64_t hash() const {
    hasher h;
    for (const auto& [name, text] : files) h.add(std::as_bytes(std::span(text)));
    return h.value();
  }
};

/// Reads the files of the tokenizer that open_tokenizer(path) opens. @error as read_file
inline result<tokenizer_text> read_tokenizer_text(const std::string& path) {
  tokenizer_text out;
  std::vector<std::pair<std::string, std::string>> wanted;  // name, path
  if (!detail::is_folder(path)) wanted = {{path.ends_with(".txt") ? "vocab.txt" : "tokenizer.json", path}};
  else if (detail::is_there(path + "/tokenizer.json")) wanted = {{"tokenizer.json", path + "/tokenizer.json"}};
  else if (detail::is_there(path + "/merges.txt")) wanted = {{"vocab.json", path + "/vocab.json"}, {"merges.txt", path + "/merges.txt"}};
  else wanted = {{"vocab.txt", path + "/vocab.txt"}};
  for (auto& [name, file] : wanted) {
    auto bytes = read_file(file);
    if (!bytes) return std::move(bytes).error();
    out.files.emplace_back(std::move(name), std::string(bytes->text()));
  }
  return out;
}

}  // namespace isotope::io
