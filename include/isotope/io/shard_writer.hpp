#pragma once
/// Writes token shards as ids come: each file is written beside its name and renamed, and the manifest, without which nothing reads the
/// folder, is the last one.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/descriptor.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/file_writer.hpp>
#include <isotope/io/shard_manifest.hpp>
#include <isotope/io/window_order.hpp>

namespace isotope::io {

struct shard_options {
  std::int32_t vocabulary = 0;
  std::int32_t end_of_text = 0;  // the id that follows every document
  std::int64_t shard_tokens = 1 << 24;
  double validation = 0.05;  // the part of the shards that is for validation: at least one shard, unless it is 0
  std::uint64_t seed = 1;    // chooses these shards
};

/// A shard has at most shard_tokens tokens, and ends with a document once it has half as many. So a document of at most shard_tokens / 2
/// tokens, its end included, is never divided between two shards, and never between training and validation.
class shard_writer {
 public:
  /// Makes the folder.
  ///
  /// @error invalid_argument: the folder is there already, or an option is out of range; write_failed
  static result<shard_writer> make(const std::string& folder, const shard_options& o) {
    const auto refuse = [&](std::string what, const char* fix) { return fail(errc::invalid_argument, std::move(what), folder, fix); };
    if (o.vocabulary < 1 || o.end_of_text < 0 || o.end_of_text >= o.vocabulary)
      return refuse("the end of a text is " + std::to_string(o.end_of_text) + " of " + std::to_string(o.vocabulary) + " ids",
                    "give an id of the vocabulary");
    if (o.shard_tokens < 2 || o.shard_tokens > most_shard_tokens)
      return refuse("shards of " + std::to_string(o.shard_tokens) + " tokens", "give 2 to 1073741824");
    if (!(o.validation >= 0 && o.validation < 1))
      return refuse("a part of " + number_text(o.validation) + " for validation", "give a number in [0, 1)");
    if (::mkdir(folder.c_str(), 0777) != 0) {
      const int error = errno;
      if (error != EEXIST)
        return fail(errc::write_failed, "cannot make the folder: " + detail::reason(error), folder, "check the folder above it");
      if (has_manifest(folder)) return refuse("already holds token shards", "name another folder");
      return refuse("exists, and is not a complete folder of token shards: a run may have been cut off there",
                    "remove it, or name another folder");
    }
    return shard_writer(folder, o);
  }
  shard_writer(shard_writer&& from) noexcept
      : folder_(std::exchange(from.folder_, {})),
        options_(from.options_),
        manifest_(std::move(from.manifest_)),
        file_(std::move(from.file_)),
        hash_(from.hash_),
        buffer_(std::move(from.buffer_)),
        others_(std::move(from.others_)),
        tokens_(from.tokens_),
        documents_(from.documents_) {}
  shard_writer& operator=(shard_writer&&) = delete;
  /// Removes what it wrote, unless it was finished.
  ~shard_writer() {
    if (folder_.empty()) return;
    file_.reset();
    for (std::size_t k = 0; k < manifest_.shards.size(); ++k) ::unlink((folder_ + "/" + shard_name(k)).c_str());
    for (const std::string& name : others_) ::unlink((folder_ + "/" + name).c_str());
    ::rmdir(folder_.c_str());
  }

  /// Appends ids of the current document. @error write_failed; invalid_argument: an id outside the vocabulary, more than most_token_shards
  /// shards
  result<void> add(std::span<const std::int32_t> ids) {
    while (!ids.empty()) {
      const auto n = static_cast<std::size_t>(std::min<std::int64_t>(options_.shard_tokens - tokens_, std::ssize(ids)));
      if (auto r = put(ids.first(n)); !r) return r;
      if (tokens_ == options_.shard_tokens)
        if (auto r = close(); !r) return r;
      ids = ids.subspan(n);
    }
    return {};
  }
  /// Ends the current document. @error as add
  result<void> end_document() {
    ++documents_;
    if (auto r = add(std::span(&options_.end_of_text, 1)); !r) return r;
    return 2 * tokens_ >= options_.shard_tokens ? close() : result<void>();
  }
  /// Writes a file that belongs to the shards, such as the tokenizer. @error write_failed
  result<void> put_file(std::string_view name, std::string_view text) {
    others_.emplace_back(name);
    return write_file(folder_ + "/" + others_.back(), text);
  }

  std::int64_t documents() const { return documents_; }

  /// Chooses the shards for validation and writes the manifest.
  ///
  /// @param tokenizer  the hash of its files
  /// @error write_failed; invalid_argument: no documents, or no shard would be left for training
  result<shard_manifest> finish(std::uint64_t tokenizer) {
    if (tokens_ > 0)
      if (auto r = close(); !r) return std::move(r).error();
    const std::size_t n = manifest_.shards.size();
    if (n == 0) return fail(errc::invalid_argument, "the texts have no tokens", folder_, "give texts that are not empty");
    const auto wanted = static_cast<std::size_t>(std::llround(options_.validation * double(n)));
    const std::size_t count = options_.validation > 0 ? std::max<std::size_t>(1, wanted) : 0;
    if (count >= n)
      return fail(errc::invalid_argument,
                  "the " + std::to_string(manifest_.tokens(false)) + " tokens fill " + std::to_string(n) + " shards, " +
                      std::to_string(count) + " of them for validation, and none is left for training",
                  folder_,
                  "lower --shard-tokens to " + std::to_string(std::max<std::int64_t>(2, manifest_.tokens(false) / 20)) +
                      ", or give --validation 0");
    // The shards with the smallest random numbers.
    std::vector<std::pair<std::array<std::uint32_t, 4>, std::size_t>> by_chance;
    for (std::size_t k = 0; k < n; ++k) by_chance.emplace_back(philox(options_.seed, k, 0, split_stream), k);
    std::sort(by_chance.begin(), by_chance.end());
    for (std::size_t i = 0; i < count; ++i) manifest_.shards[by_chance[i].second].validation = true;
    manifest_.vocabulary = options_.vocabulary;
    manifest_.end_of_text = options_.end_of_text;
    manifest_.tokenizer_hash = tokenizer;
    manifest_.seed = options_.seed;
    if (auto r = put_file(manifest_name, manifest_.to_json()); !r) return std::move(r).error();
    folder_.clear();
    return manifest_;
  }

 private:
  shard_writer(std::string folder, const shard_options& o) : folder_(std::move(folder)), options_(o) {}

  /// Appends ids for which the current shard has room.
  result<void> put(std::span<const std::int32_t> ids) {
    if (!file_) {
      const std::size_t k = manifest_.shards.size();
      if (k == most_token_shards)
        return fail(errc::invalid_argument, "the texts fill more than " + std::to_string(k) + " shards", folder_, "raise --shard-tokens");
      auto file = file_writer::open(folder_ + "/" + shard_name(k), static_cast<std::size_t>(options_.shard_tokens) * width(), calls_);
      if (!file) return std::move(file).error();
      file_.emplace(*std::move(file));
      hash_ = {};
    }
    for (const std::int32_t id : ids) {
      if (id < 0 || id >= options_.vocabulary)
        return fail(errc::invalid_argument, "the id " + std::to_string(id) + " is none of " + std::to_string(options_.vocabulary), folder_,
                    "give ids of the tokenizer");
      std::byte bytes[4];
      std::memcpy(bytes, &id, sizeof id);  // little-endian, so the lower bytes are first
      buffer_.insert(buffer_.end(), bytes, bytes + width());
    }
    tokens_ += std::ssize(ids);
    return buffer_.size() >= buffer_bytes ? flush() : result<void>();
  }
  result<void> flush() {
    hash_.add(buffer_);
    auto r = file_->write(buffer_);
    buffer_.clear();
    return r;
  }
  result<void> close() {
    if (auto r = flush(); !r) return r;
    manifest_.shards.push_back({tokens_, hash_.value(), false});
    tokens_ = 0;
    auto r = file_->commit();
    file_.reset();
    return r;
  }
  std::size_t width() const { return options_.vocabulary <= 65536 ? 2 : 4; }

  static constexpr std::size_t buffer_bytes = 1 << 16;
  static inline const file_calls calls_{};
  std::string folder_;  // empty once nothing is to be removed
  shard_options options_;
  shard_manifest manifest_;
  std::optional<file_writer> file_;
  hasher hash_;
  std::vector<std::byte> buffer_;
  std::vector<std::string> others_;
  std::int64_t tokens_ = 0, documents_ = 0;  // tokens of the current shard
};

}  // namespace isotope::io
