#pragma once
/// What generators of tokens have in common: the plans of a decoder, and the session that they are loaded into.
#include <isotope/backend/session/session_memory.hpp>
#include <isotope/core/device.hpp>
#include <isotope/core/tensor_kind.hpp>
#include <isotope/generate/decoder_model.hpp>
#include <isotope/plan/dynamic.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace isotope {

/// A base of `Made`, whose options have `slots`, `prefill_tokens` and what plan_inference takes. `Made::model_of(size, options, tokens, reads)` is the model of a
/// run of so many tokens, which reads prompts or decodes; `Made::options_name` is for messages.
template <Target T, class Made, class Options> class loaded_decoder {
 public:
  using session = typename device<T>::session;

  /// The model of the first plan, which decodes one token of each slot.
  template <DecoderSizes S> static auto decoding(const S& size, const Options& o) { return Made::model_of(size, o, o.slots, false); }
  /// Makes the plans, which share parameters and caches. @error as plan_inference; invalid_argument for a number below 1
  template <DecoderSizes S> static result<std::vector<owned_plan>> plans(const S& size, const Options& o) {
    const std::vector<int> sizes = prefill_sizes(size.context, o);
    std::vector<std::pair<int, const char*>> numbers{{o.slots, "slots"}, {sizes.front(), "prefill_tokens"}};
    if constexpr (requires { o.tokens_per_submit; }) numbers.emplace_back(o.tokens_per_submit, "tokens_per_submit");
    for (const auto& [n, field] : numbers)
      if (n < 1) return fail(errc::invalid_argument, "is not positive", std::string(Made::options_name) + "::" + field, "give 1 or more");
    std::vector<owned_plan> all;
    const auto add = [&](std::string plan, int tokens, bool reads) -> result<void> {
      auto p = plan_inference<T>(Made::model_of(size, o, tokens, reads), o.budget, true, o.decompose_all, o.stored, nullptr, false, o.a8);
      if (!p) return std::move(p).error();
      all.push_back({std::move(plan), *std::move(p)});
      return {};
    };
    if (auto r = add("decode", o.slots, false); !r) return r.error();
    for (const int n : sizes)
      if (auto r = add("prefill " + std::to_string(n), n, true); !r) return r.error();
    return all;
  }
  /// @error as `plans`, and as the device reports
  template <DecoderSizes S> static result<Made> open(const device<T>& on, const S& size, const Options& o = {}) {
    auto made = plans(size, o);
    if (!made) return std::move(made).error();
    return open(on, size, o, *std::move(made));
  }
  /// Loads plans that `plans` made for the same size and options.
  template <DecoderSizes S> static result<Made> open(const device<T>& on, const S& size, const Options& o, std::vector<owned_plan> made) {
    auto loaded = on.load(std::move(made));
    if (!loaded) return std::move(loaded).error();
    return Made(*std::move(loaded), size.vocab, size.context, o);
  }

  int vocab() const { return vocab_; }
  int context() const { return context_; }
  session& loaded() { return session_; }
  const session& loaded() const { return session_; }
  /// The state dict and access to it, as training sessions have it (train/session.hpp), so that weights can be loaded.
  auto parameters() const { return session_.parameters(); }
  result<void> write(tensor_kind kind, std::size_t parameter, std::span<const float> in) { return session_.write(kind, parameter, in); }
  void initialize(std::uint64_t seed) { session_.initialize(seed); }

 protected:
  session session_;
  int vocab_, context_;
  std::vector<int> prefill_;  // tokens of the plans that read prompts, ascending

  /// The smallest size of a plan that reads so many tokens, as an index into prefill_; the largest if none does. Its plan is the next number.
  std::size_t prefill_of(std::size_t tokens) const {
    std::size_t k = 0;
    while (k + 1 < prefill_.size() && std::size_t(prefill_[k]) < tokens) ++k;
    return k;
  }

 private:
  friend Made;  // which alone derives from this

  loaded_decoder(session loaded, int vocab, int context, const Options& o)
      : session_(std::move(loaded)), vocab_(vocab), context_(context), prefill_(prefill_sizes(context, o)) {}

  /// Without repetitions, and none beyond the context.
  static std::vector<int> prefill_sizes(int context, const Options& o) {
    std::vector<int> all = o.prefill_tokens;
    if (all.empty()) all.push_back(16);
    for (int& n : all) n = std::min(n, context);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }
};

}  // namespace isotope
