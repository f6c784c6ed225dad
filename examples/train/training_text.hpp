#pragma once
/// --data text: a text as ids of the tokenizer in the folder of --from.
#include "../support/corpus.hpp"
#include "model_source.hpp"

#include <isotope/core/error.hpp>
#include <isotope/io/dataset.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/tokenizer_file.hpp>
#include <isotope/io/utf8.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace train_program {

/// Encodes a whole text, without the tokens that a tokenizer puts around one. Special tokens that are written in it, such as an end of
/// text, become their ids.
///
/// @param path  of the text; empty: the built-in one
/// @error as io::open_tokenizer and io::read_file; bad_format: not UTF-8, with the byte; model_mismatch: the tokenizer has more ids than
/// the model; invalid_argument: a vocabulary that datasets cannot hold
inline isotope::result<isotope::io::dataset> tokenized_text(const model_source& from, const std::string& path) {
  namespace io = isotope::io;
  using isotope::errc, isotope::fail;
  const auto tokenizer = io::open_tokenizer(from.folder.path);
  if (!tokenizer) return tokenizer.error();
  const std::int64_t vocab = from.vocab();
  if (tokenizer->size() > vocab)
    return fail(errc::model_mismatch, "the tokenizer has " + std::to_string(tokenizer->size()) + " ids, the model " + std::to_string(vocab),
                from.folder.path, "give the folder as it was published");
  isotope::result<io::file_bytes> file = io::file_bytes();
  if (!path.empty()) file = io::read_file(path);
  if (!file) return std::move(file).error();
  const std::string_view text = path.empty() ? support::embedded_corpus() : file->text();
  for (std::size_t at = 0; at < text.size();) {
    const auto bytes = io::decode_utf8(text, at).bytes;
    if (bytes == 0)
      return fail(errc::bad_format, "not UTF-8 at byte " + std::to_string(at), path,
                  "convert the text to UTF-8; for a file of token ids give --data tokens");
    at += bytes;
  }
  auto coded = tokenizer->encode(text, {.framed = false});
  if (!coded) return std::move(coded).error();
  return io::dataset(io::vocabulary::of_tokens(std::int32_t(vocab)), std::move(coded->ids));
}

}  // namespace train_program
