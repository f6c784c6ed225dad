#pragma once
/// Text files to token shards, streamed: memory holds a few MiB, whatever the texts have.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/document_pieces.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/shard_writer.hpp>
#include <isotope/io/tokenizer_file.hpp>
#include <isotope/io/tokenizer_text.hpp>

namespace isotope::io {

/// What ends a document besides the end of a file: nothing, a line end, an empty line, or the end-of-text token as it is written in the
/// text.
enum class document_end : std::uint8_t { file, line, paragraph, token };

struct text_shard_options {
  std::string end_token = "<|endoftext|>";  // its id ends every document
  document_end end = document_end::file;
  bool plain = false;             // special tokens that are written in a text are text
  std::int64_t shard_tokens = 0;  // 0: follows from the sizes of the files, so that there are some dozens of shards
  double validation = 0.05;
  std::uint64_t seed = 1;
};

namespace detail {

/// Reads a file or a pipe from its beginning, in pieces. @error as open_to_read, `take`; unreadable: an I/O error
template <class Take> result<void> read_in_pieces(const std::string& path, Take&& take) {
  const auto file = open_to_read(path);
  if (!file) return file.error();
  std::string piece(1 << 20, '\0');
  for (std::uint64_t done = 0;;) {
    const ssize_t got = ::read(file->file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return fail(errc::unreadable, "read failed after " + std::to_string(done) + " bytes: " + reason(errno), path, "check the disk");
    if (got == 0) return {};
    done += static_cast<std::uint64_t>(got);
    if (auto r = take(std::string_view(piece).substr(0, static_cast<std::size_t>(got))); !r) return r;
  }
}

/// Tokens of a shard that make some dozens of shards of files of these sizes, at most 512. Of pipes, the size is not known.
/// @error as open_to_read
inline result<std::int64_t> shard_tokens_for(std::span<const std::string> files) {
  std::int64_t bytes = 0;
  for (const std::string& path : files) {
    struct stat status{};  // a pipe that is opened and closed again would end its writer
    if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return std::int64_t(1) << 24;
    if (const auto file = open_to_read(path); !file) return file.error();
    bytes += static_cast<std::int64_t>(status.st_size);
  }
  return std::clamp<std::int64_t>(bytes / 256 + 1, 4096, most_shard_tokens);
}

}  // namespace detail

struct written_shards {
  shard_manifest manifest;
  std::int64_t documents = 0;
  std::uint64_t bytes = 0;  // of text
};

/// Writes the folder `out`, which must not exist: shards, the tokenizer's files, and last the manifest. After a failure the folder is
/// removed.
///
/// @param path  of the tokenizer, as for open_tokenizer
/// @error as open_tokenizer, document_pieces, shard_writer; invalid_argument: the tokenizer has no such end-of-text token
inline result<written_shards> write_text_shards(const std::string& path, std::span<const std::string> files, const std::string& out,
                                                const text_shard_options& o) {
  const auto t = open_tokenizer(path);
  if (!t) return t.error();
  const auto text = read_tokenizer_text(path);
  if (!text) return text.error();
  const std::int32_t end = t->id_of(o.end_token);
  if (end < 0)
    return fail(errc::invalid_argument, "has no token " + json_string(o.end_token), path,
                "name the token that ends a text with --end-token, such as [SEP]");
  auto shard_tokens = o.shard_tokens > 0 ? result<std::int64_t>(o.shard_tokens) : detail::shard_tokens_for(files);
  if (!shard_tokens) return shard_tokens.error();
  auto writer = shard_writer::make(
      out, {.vocabulary = t->size(), .end_of_text = end, .shard_tokens = *shard_tokens, .validation = o.validation, .seed = o.seed});
  if (!writer) return std::move(writer).error();
  for (const auto& [name, contents] : text->files)
    if (auto r = writer->put_file(name, contents); !r) return std::move(r).error();

  const bool divisible = std::none_of(t->added().begin(), t->added().end(),
                                      [](const added_token& a) { return a.content.find_first_of(" \n") != std::string::npos; });
  const std::string separator = o.end == document_end::line        ? "\n"
                                : o.end == document_end::paragraph ? "\n\n"
                                : o.end == document_end::token     ? o.end_token
                                                                   : "";
  written_shards done;
  document_pieces documents(separator, divisible);
  const auto take = [&](std::string_view piece, bool last) -> result<void> {
    const auto made = t->encode(piece, {.special = o.plain ? specials::plain : specials::parse, .framed = false});
    if (!made) return made.error();
    if (auto r = writer->add(made->ids); !r) return r;
    return last ? writer->end_document() : result<void>();
  };
  for (const std::string& file : files) {
    const auto pieces = [&](std::string_view bytes) {
      done.bytes += bytes.size();
      return documents.add(bytes, file, take);
    };
    if (auto r = detail::read_in_pieces(file, pieces); !r) return std::move(r).error();
    if (auto r = documents.end(take); !r) return std::move(r).error();
  }
  auto manifest = writer->finish(text->hash());
  if (!manifest) return std::move(manifest).error();
  done.documents = writer->documents();
  done.manifest = *std::move(manifest);
  return done;
}

}  // namespace isotope::io
