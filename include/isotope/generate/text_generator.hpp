#pragma once
/// Text from a folder of Hugging Face: a decoder, its weights and its tokenizer, opened together.
#include <isotope/generate/batcher.hpp>
#include <isotope/generate/text_batch.hpp>
#include <isotope/interop/decoder_folder.hpp>
#include <isotope/io/tokenizer_file.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace isotope {

/// A decoder that continues texts.
template <Target T> class text_generator {
 public:
  /// Opens the folder that the model and its tokenizer are in.
  /// @error as read_decoder_config, open_tokenizer, load_decoder, and as the device reports; model_mismatch: the tokenizer has ids beyond the vocabulary
  static result<text_generator> open(const device<T>& on, const io::model_folder& folder, const batcher_options& o = {}) {
    const auto config = interop::read_decoder_config(folder);
    if (!config) return config.error();
    return open(on, folder, *config, o,
                std::visit([&](const auto& c) { return batcher<T>::plans(interop::inference_size(c), o); }, *config));
  }
  /// The same on the first device.
  static result<text_generator> open(const io::model_folder& folder, const batcher_options& o = {}) {
    auto on = device<T>::open();
    if (!on) return std::move(on).error();
    return open(*on, folder, o);
  }
  /// Loads plans that batcher::plans made for the same configuration and options; a failed one is passed on. Adapters are added to the weights.
  static result<text_generator> open(const device<T>& on, const io::model_folder& folder, const interop::decoder_config& config,
                                     const batcher_options& o, result<std::vector<owned_plan>> plans,
                                     const interop::lora_folder* adapters = nullptr) {
    if (!plans) return std::move(plans).error();
    auto tokens = io::open_tokenizer(folder.path);
    if (!tokens) return std::move(tokens).error();
    auto ends = interop::end_tokens(folder);
    if (!ends) return std::move(ends).error();
    const auto load = [&](const auto& c) { return batcher<T>::open(on, interop::inference_size(c), o, *std::move(plans)); };
    auto batch = std::visit(load, config);
    if (!batch) return std::move(batch).error();
    if (tokens->size() > batch->vocab())
      return fail(errc::model_mismatch,
                  "the tokenizer has " + std::to_string(tokens->size()) + " ids, the model " + std::to_string(batch->vocab()), folder.path,
                  "give the folder as it was published");
    if (auto r = interop::load_decoder(*batch, folder, config, adapters); !r) return r.error();
    return text_generator(*std::move(batch), *std::move(tokens), *std::move(ends));
  }

  batcher<T>& batch() { return batch_; }
  const batcher<T>& batch() const { return batch_; }
  const io::tokenizer& tokenizer() const { return tokenizer_; }
  /// The ids that end a text.
  const std::vector<std::int32_t>& ends() const { return ends_; }

  /// The ids of a prompt, with the tokens that the tokenizer puts around a text. An empty one is an end-of-text token, after which texts begin.
  /// @error invalid_argument: longer than the context and not to be cut; an empty prompt for a model without end-of-text token
  result<std::vector<std::int32_t>> prompt_ids(std::string_view prompt, const text_request& how) const {
    auto coded = tokenizer_.encode(prompt);
    if (!coded) return std::move(coded).error();
    std::vector<std::int32_t> ids = std::move(coded->ids);
    if (ids.empty() && !ends_.empty()) ids.push_back(ends_[0]);
    if (ids.empty()) return fail(errc::invalid_argument, "has no tokens", "the prompt", "give a text");
    const auto most = std::size_t(batch_.context());
    if (ids.size() > most && !how.truncate)
      return fail(errc::invalid_argument,
                  "has " + std::to_string(ids.size()) + " tokens, and the context of the model has " + std::to_string(most), "the prompt",
                  "shorten it, or keep its last tokens with --truncate");
    if (ids.size() > most) ids.erase(ids.begin(), ids.end() - std::ptrdiff_t(most));
    return ids;
  }

  /// Continues all prompts, as many at once as there are slots. Calls each(number of the prompt, piece of text, whether it is the last one) -> bool; false ends
  /// that text. A piece holds whole characters, and comes as soon as no stop string can begin in it; pieces of different prompts come in any order. The last
  /// piece of a text may be empty.
  /// @error as prompt_ids, before anything is generated; as the device reports
  template <class Each> result<void> generate(std::span<const std::string> prompts, const text_request& how, Each&& each) {
    std::vector<std::vector<std::int32_t>> ids;
    for (const std::string& p : prompts) {
      auto coded = prompt_ids(p, how);
      if (!coded) return std::move(coded).error();
      ids.push_back(*std::move(coded));
    }
    failure wrong;
    drawn_ = 0;
    const auto take = [&](std::size_t k, const text_piece& piece) {
      ++drawn_;
      if (piece.end == text_end::failed) {  // the model has ids that its tokenizer lacks
        if (wrong.what.empty()) wrong = *piece.wrong;
        return false;
      }
      return (piece.text.empty() && !piece.last()) || bool(each(k, piece.text, piece.last()));
    };
    for (std::size_t k = 0; how.tokens <= 0 && k < prompts.size(); ++k) static_cast<void>(each(k, std::string_view(), true));
    if (how.tokens <= 0) return {};
    text_batch<T> batch(batch_, tokenizer_, ends_);
    for (std::size_t next = 0; next < prompts.size() || batch.busy();) {
      for (; next < prompts.size() && batch.has_room(); ++next)
        if (auto r = batch.admit(ids[next], how, next); !r) return std::move(r).error();
      if (auto r = batch.advance(take); !r) return r;
    }
    return wrong.what.empty() ? result<void>{} : wrong;
  }
  /// Continues one text. Calls each(piece) -> bool; false ends it. @error as above
  template <class Each> result<void> generate(std::string_view prompt, const text_request& how, Each&& each) {
    const std::string one(prompt);
    const auto piece_of = [&](std::size_t, std::string_view piece, bool) { return piece.empty() || bool(each(piece)); };
    return generate(std::span<const std::string>(&one, 1), how, piece_of);
  }
  /// How many tokens the last call has drawn.
  std::int64_t drawn() const { return drawn_; }

 private:
  batcher<T> batch_;
  io::tokenizer tokenizer_;
  std::vector<std::int32_t> ends_;
  std::int64_t drawn_ = 0;

  text_generator(batcher<T> b, io::tokenizer t, std::vector<std::int32_t> ends)
      : batch_(std::move(b)), tokenizer_(std::move(t)), ends_(std::move(ends)) {}
};

}  // namespace isotope
