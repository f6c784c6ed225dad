#pragma once
/// What a run trains on: a text, token ids in one file, or a folder of token shards.
#include "../support/corpus.hpp"
#include "settings.hpp"
#include "training_text.hpp"

#include <isotope/core/error.hpp>
#include <isotope/io/dataset.hpp>
#include <isotope/io/file.hpp>
#include <isotope/io/shard_dataset.hpp>
#include <isotope/io/tokenizer_text.hpp>
#include <isotope/io/vocabulary.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>

namespace train_program {

/// One type for both kinds of data, so that the training loop is compiled once. The members are those of io::dataset and io::shard_dataset.
class data_source {
 public:
  explicit data_source(isotope::io::dataset d) : data_(std::move(d)) {}
  explicit data_source(isotope::io::shard_dataset d) : data_(std::move(d)) {}

  const isotope::io::vocabulary& vocab() const {
    return std::visit([](const auto& d) -> const isotope::io::vocabulary& { return d.vocab(); }, data_);
  }
  std::uint64_t hash() const {
    return std::visit([](const auto& d) { return d.hash(); }, data_);
  }
  std::int64_t token_count() const {
    if (const auto* d = std::get_if<isotope::io::dataset>(&data_)) return static_cast<std::int64_t>(d->size());
    return shards()->token_count();
  }
  void training_batch(std::uint64_t seed, std::int64_t k, std::int64_t length, std::span<std::int32_t> tokens,
                      std::span<std::int32_t> targets) const {
    std::visit([&](const auto& d) { d.training_batch(seed, k, length, tokens, targets); }, data_);
  }
  std::int64_t validation_windows(std::int64_t length) const {
    return std::visit([&](const auto& d) { return d.validation_windows(length); }, data_);
  }
  std::int64_t validation_batch(std::int64_t first, std::int64_t length, std::span<std::int32_t> tokens,
                                std::span<std::int32_t> targets) const {
    return std::visit([&](const auto& d) { return d.validation_batch(first, length, tokens, targets); }, data_);
  }
  isotope::result<void> status() const {
    const auto* d = shards();
    return d == nullptr ? isotope::result<void>() : d->status();
  }
  /// The shards, or null.
  const isotope::io::shard_dataset* shards() const { return std::get_if<isotope::io::shard_dataset>(&data_); }

 private:
  std::variant<isotope::io::dataset, isotope::io::shard_dataset> data_;
};

/// Opens what the settings name, and checks that it has windows.
///
/// @param from  the folder of --from, or null
/// @error as load_dataset, dataset::check, tokenized_text, shard_dataset::open and check
inline isotope::result<data_source> open_data(const settings& s, const model_source* from) {
  using isotope::io::text_unit;
  const std::int64_t length = s.training.length;
  if (s.input.shards()) {
    auto shards = isotope::io::shard_dataset::open(s.input.data, s.training.shuffle_window);
    if (!shards) return std::move(shards).error();
    if (from != nullptr)
      if (auto r = shards->take_vocabulary(from->vocab()); !r) return std::move(r).error();
    if (auto r = shards->check(length, s.training.batch); !r) return std::move(r).error();
    return data_source(*std::move(shards));
  }
  const std::string& path = s.input.text;
  const text_unit unit = s.input.data == "byte" ? text_unit::bytes : s.input.data == "tokens" ? text_unit::tokens : text_unit::characters;
  auto data = s.input.data == "text" && from != nullptr ? tokenized_text(*from, path)
              : path.empty()                            ? isotope::io::text_dataset(support::embedded_corpus(), unit, "the built-in text")
                                                        : isotope::io::load_dataset(path, unit, s.input.vocab);
  if (!data) return std::move(data).error();
  if (auto r = data->check(length); !r) {
    isotope::failure f = std::move(r).error();
    if (!path.empty()) f.where = path;
    return f;
  }
  return data_source(*std::move(data));
}

/// Puts the tokenizer of shards and the id of its end-of-text token into the folder of a saved model, so that isotope-generate finds them.
/// A folder that has a tokenizer keeps it. @error as read_file, write_file; model_mismatch: it is not the tokenizer that made the shards
inline isotope::result<void> save_tokenizer(const settings& s, const data_source& data) {
  namespace io = isotope::io;
  const auto in = [](const std::string& folder, const std::string& name) { return folder + "/" + name; };
  const std::string& to = s.folder.save_hf;
  if (data.shards() == nullptr || to.empty()) return {};
  for (const char* name : {"tokenizer.json", "vocab.json", "vocab.txt"})
    if (io::detail::is_there(in(to, name))) return {};
  const auto text = io::read_tokenizer_text(s.input.data);
  if (!text) return text.error().code == isotope::errc::not_found ? isotope::result<void>() : isotope::result<void>(text.error());
  if (text->hash() != data.shards()->manifest().tokenizer_hash)
    return isotope::fail(isotope::errc::model_mismatch, "the tokenizer there is not the one of the manifest, and was not saved",
                         s.input.data, "put the tokenizer that made the shards into " + to);
  for (const auto& [name, contents] : text->files)
    if (auto r = io::write_file(in(to, name), contents); !r) return r;
  if (const std::string path = in(to, "generation_config.json"); !io::detail::is_there(path))
    return io::write_file(path, "{\"eos_token_id\": " + std::to_string(data.shards()->manifest().end_of_text) + "}\n");
  return {};
}

}  // namespace train_program
