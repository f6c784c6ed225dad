#pragma once
/// Token shards as training data. Files are read where a batch needs them and never held in memory; they are not mapped, because shortening
/// a mapped file ends the process. Micro-batch k is a pure function of (seed, k), so one number is the position in the data.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/byte_source.hpp>
#include <isotope/io/hash.hpp>
#include <isotope/io/shard_manifest.hpp>
#include <isotope/io/vocabulary.hpp>
#include <isotope/io/window_order.hpp>

namespace isotope::io {

/// Windows of S tokens lie one after another in a shard, and none reaches into the next shard: the tokens after the last window of a shard
/// are not read. Windows of the training shards are read in window_order, those of the validation shards as they stand. Members that read
/// are for one thread at a time.
class shard_dataset {
 public:
  /// Opens a folder that isotope-tokenize wrote, and compares the sizes of its files with the manifest.
  ///
  /// @param shuffle_window  among how many windows the order is random, at least 1
  /// @error as read_manifest, parse_manifest and byte_source::open; truncated: a shard has another size than the manifest says
  static result<shard_dataset> open(const std::string& folder, std::int64_t shuffle_window) {
    auto text = read_manifest(folder);
    if (!text) return std::move(text).error();
    auto manifest = parse_manifest(*text, folder + "/" + std::string(manifest_name));
    if (!manifest) return std::move(manifest).error();
    shard_dataset d;
    hasher h;
    h.add(std::as_bytes(std::span(*text)));
    d.hash_ = h.value();
    d.folder_ = folder;
    d.shuffle_window_ = static_cast<std::uint64_t>(std::max<std::int64_t>(shuffle_window, 1));
    d.manifest_ = *std::move(manifest);
    d.vocab_ = vocabulary::of_tokens(d.manifest_.vocabulary);
    for (std::size_t k = 0; k < d.manifest_.shards.size(); ++k) {
      auto file = detail::open_regular(folder + "/" + shard_name(k));
      if (!file) return std::move(file).error();
      const std::uint64_t bytes = static_cast<std::uint64_t>(d.manifest_.shards[k].tokens) * d.manifest_.bytes_per_token();
      if (file->size() != bytes)
        return fail(errc::truncated,
                    "has " + std::to_string(file->size()) + " bytes, its " + std::to_string(d.manifest_.shards[k].tokens) +
                        " tokens take " + std::to_string(bytes),
                    file->where(), detail::manifest_fix);
      d.files_.push_back(*std::move(file));
    }
    return d;
  }

  /// Takes the vocabulary of a model that has more ids than the tokenizer. @error model_mismatch: it has fewer
  result<void> take_vocabulary(std::int64_t size) {
    if (size < manifest_.vocabulary)
      return fail(errc::model_mismatch,
                  "the shards have a vocabulary of " + std::to_string(manifest_.vocabulary) + ", the model has " + std::to_string(size),
                  folder_, "make the shards with the tokenizer of the model");
    vocab_ = vocabulary::of_tokens(static_cast<std::int32_t>(size));
    return {};
  }

  const shard_manifest& manifest() const { return manifest_; }
  const vocabulary& vocab() const { return vocab_; }
  /// A hash of the manifest, which has the hashes of all shards.
  std::uint64_t hash() const { return hash_; }
  std::int64_t token_count() const { return manifest_.tokens(false) + manifest_.tokens(true); }

  /// Checks that an epoch has a batch, and validation a window if there are shards for it.
  ///
  /// @error invalid_argument, with how many windows there are
  result<void> check(std::int64_t length, std::int64_t batch) const {
    const auto refuse = [&](std::string what, const char* fix) { return fail(errc::invalid_argument, std::move(what), folder_, fix); };
    const std::string of = " windows of " + std::to_string(length) + " tokens";
    if (length < 1 || batch < 1) return refuse("a batch of " + std::to_string(batch) + of + " is empty", "give at least 1 of each");
    if (const std::int64_t have = windows(false, length); have < batch)
      return refuse("the training shards have " + std::to_string(have) + of + ", a batch takes " + std::to_string(batch),
                    "lower --batch or --length, or make larger shards of more text");
    if (manifest_.count(true) > 0 && windows(true, length) == 0)
      return refuse("the validation shards have no" + of, "shorten --length, or make larger shards of more text");
    return {};
  }

  /// One training batch of `rows` windows: row r is window_order(seed, epoch)(position + r), where an epoch has floor(windows / rows)
  /// batches, so what would fill a part of a batch is dropped; epoch = floor(cursor / batches), position = (cursor mod batches) rows.
  /// Targets are the tokens that follow. After a failure, tokens are 0 and targets -1, and `status` says what happened.
  ///
  /// @param cursor   counts micro-batches from the start of training
  /// @param tokens   (B,S)
  /// @param targets  (B,S)
  /// Precondition: check(length, B) passed; both spans hold B * length.
  void training_batch(std::uint64_t seed, std::int64_t cursor, std::int64_t length, std::span<std::int32_t> tokens,
                      std::span<std::int32_t> targets) const {
    const auto row = static_cast<std::size_t>(length), rows = tokens.size() / row;
    const auto all = static_cast<std::uint64_t>(windows(false, length)), batches = rows == 0 ? 0 : all / rows;
    if (batches == 0) return blank(tokens, targets);
    const auto k = static_cast<std::uint64_t>(cursor);
    const window_order order(seed, k / batches, all, shuffle_window_);
    for (std::size_t r = 0; r < rows; ++r)
      read_window(false, order(k % batches * rows + r), length, tokens.subspan(r * row, row), targets.subspan(r * row, row));
  }

  /// Returns how many windows the validation shards have.
  std::int64_t validation_windows(std::int64_t length) const { return windows(true, length); }

  /// Fills the batch's rows with the validation windows first, first + 1, ...; rows past the last window get token 0 and target -1.
  ///
  /// @return  how many rows hold a window, which is the weight of the batch's mean loss
  std::int64_t validation_batch(std::int64_t first, std::int64_t length, std::span<std::int32_t> tokens,
                                std::span<std::int32_t> targets) const {
    const auto row = static_cast<std::size_t>(length), rows = tokens.size() / row;
    const std::int64_t used = std::clamp(windows(true, length) - first, std::int64_t(0), static_cast<std::int64_t>(rows));
    for (std::size_t r = 0; r < rows; ++r) {
      const auto t = tokens.subspan(r * row, row), u = targets.subspan(r * row, row);
      if (static_cast<std::int64_t>(r) < used) read_window(true, static_cast<std::uint64_t>(first) + r, length, t, u);
      else blank(t, u);
    }
    return used;
  }

  /// The first failure of a read. @error as byte_source::read; bad_format: an id that the vocabulary does not have
  result<void> status() const {
    if (failed_.what.empty()) return {};
    return failed_;
  }

  /// Reads all shards and compares their hashes and ids with the manifest. @error corrupt: a hash differs; as status
  result<void> verify() const {
    const std::size_t width = manifest_.bytes_per_token();
    std::vector<std::byte> piece(1 << 20);
    for (std::size_t k = 0; k < files_.size(); ++k) {
      hasher h;
      for (std::uint64_t at = 0, n = 0; at < files_[k].size(); at += n) {
        n = std::min<std::uint64_t>(piece.size(), files_[k].size() - at);
        const auto bytes = std::span(piece).first(static_cast<std::size_t>(n));
        if (auto r = files_[k].read(at, bytes); !r) return r;
        h.add(bytes);
        for (std::size_t i = 0; i < bytes.size() / width; ++i)
          if (const std::uint32_t id = id_at(bytes, i); id >= limit()) return bad_id(k, at / width + i, id);
      }
      if (h.value() != manifest_.shards[k].hash)
        return fail(errc::corrupt,
                    "its hash is " + detail::hash_digits(h.value()) + ", the manifest has " + detail::hash_digits(manifest_.shards[k].hash),
                    files_[k].where(), detail::manifest_fix);
    }
    return {};
  }

 private:
  /// Where the windows of one split begin, for one length.
  struct table {
    std::int64_t length = 0;
    std::vector<std::size_t> shards;
    std::vector<std::uint64_t> ends;  // the number of windows up to the end of each of these shards
  };

  const table& table_of(bool validation, std::int64_t length) const {
    table& t = tables_[validation ? 1 : 0];
    if (t.length == length) return t;
    t = {length, {}, {}};
    for (std::size_t k = 0; k < manifest_.shards.size(); ++k) {
      const token_shard& s = manifest_.shards[k];
      if (s.validation != validation) continue;
      t.shards.push_back(k);
      t.ends.push_back((t.ends.empty() ? 0 : t.ends.back()) + static_cast<std::uint64_t>((s.tokens - 1) / length));
    }
    return t;
  }
  std::int64_t windows(bool validation, std::int64_t length) const {
    const table& t = table_of(validation, length);
    return t.ends.empty() ? 0 : static_cast<std::int64_t>(t.ends.back());
  }

  std::uint32_t limit() const { return static_cast<std::uint32_t>(manifest_.vocabulary); }
  std::uint32_t id_at(std::span<const std::byte> bytes, std::size_t i) const {
    if (manifest_.bytes_per_token() == 2) {
      std::uint16_t id = 0;
      std::memcpy(&id, bytes.data() + 2 * i, sizeof id);
      return id;
    }
    std::uint32_t id = 0;
    std::memcpy(&id, bytes.data() + 4 * i, sizeof id);
    return id;
  }
  failure bad_id(std::size_t shard, std::uint64_t at, std::uint32_t id) const {
    return fail(
        errc::bad_format,
        "token " + std::to_string(at) + " is " + std::to_string(id) + ", the vocabulary has " + std::to_string(manifest_.vocabulary),
        files_[shard].where(), detail::manifest_fix);
  }

  static void blank(std::span<std::int32_t> tokens, std::span<std::int32_t> targets) {
    std::fill(tokens.begin(), tokens.end(), 0);
    std::fill(targets.begin(), targets.end(), -1);
  }

  /// Every id is compared with the vocabulary, because kernels trust them.
  void read_window(bool validation, std::uint64_t number, std::int64_t length, std::span<std::int32_t> tokens,
                   std::span<std::int32_t> targets) const {
    if (!failed_.what.empty()) return blank(tokens, targets);
    const table& t = table_of(validation, length);
    const auto i = static_cast<std::size_t>(std::upper_bound(t.ends.begin(), t.ends.end(), number) - t.ends.begin());
    const std::size_t shard = t.shards[i], width = manifest_.bytes_per_token(), count = tokens.size() + 1;
    const std::uint64_t begin = (number - (i == 0 ? 0 : t.ends[i - 1])) * static_cast<std::uint64_t>(length);
    bytes_.resize(count * width);
    if (auto r = files_[shard].read(begin * width, bytes_); !r) {
      failed_ = std::move(r).error();
      return blank(tokens, targets);
    }
    for (std::size_t j = 0; j < count; ++j) {
      const std::uint32_t id = id_at(bytes_, j);
      if (id >= limit()) {
        failed_ = bad_id(shard, begin + j, id);
        return blank(tokens, targets);
      }
      if (j < tokens.size()) tokens[j] = static_cast<std::int32_t>(id);
      if (j > 0) targets[j - 1] = static_cast<std::int32_t>(id);
    }
  }

  std::string folder_;
  shard_manifest manifest_;
  vocabulary vocab_;
  std::uint64_t hash_ = 0, shuffle_window_ = 1;
  std::vector<byte_source> files_;
  mutable table tables_[2];  // of training and validation
  mutable std::vector<std::byte> bytes_;
  mutable failure failed_;
};

}  // namespace isotope::io
