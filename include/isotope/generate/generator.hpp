#pragma once
/// Generates text with a decoder: each token is computed once, and its keys and values are kept in caches for the tokens after it.
#include <isotope/backend/session/session_memory.hpp>
#include <isotope/core/device.hpp>
#include <isotope/core/tensor_kind.hpp>
#include <isotope/generate/decoder_model.hpp>
#include <isotope/generate/token_history.hpp>
#include <isotope/plan/dynamic.hpp>
#include <isotope/train/sample.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace isotope {

struct generator_options {
  int slots = 1;  // sequences that are decoded at once, each with a cache
  std::vector<int> prefill_tokens = {16, 64,
                                     256};  // sizes of the plans that read prompts; a part of a prompt takes the smallest one that it fits
  std::int64_t budget = 0;                  // bytes; 0: no limit
  bool decompose_all = false;               // as the parameter of plan_inference
  weight_storage stored = nullptr;          // likewise
};

/// A text to continue: its tokens, how many to add, and how they are drawn. The seed and the number of tokens added before are the counter of a draw, so the
/// continuation depends on nothing else.
struct generation_request {
  std::span<const std::int32_t> prompt;
  std::int64_t tokens = 0;
  train::sample_options draw{};
};

/// A loaded decoder, such as a GPT, with `slots` sequences. One run of one plan computes the next logits of all of them.
///
/// A sequence that has filled the context loses its oldest quarter when a token is appended, and what is left is read again, since positions are part of what
/// caches hold: with n tokens of context, that costs 3 n / 4 tokens of prefill in n / 4 tokens.
template <Target T> class generator {
 public:
  using session = typename device<T>::session;
  using storage = typename T::precision::storage;

  /// The model that decodes one token of each slot: the first plan.
  template <DecoderSizes S> static typename S::cached_logits decoding(const S& size, const generator_options& o) {
    return {size, o.slots, o.slots, 0};
  }
  /// Makes the plans of a generator. They share parameters and caches. @error as plan_inference; invalid_argument for slots or a size below 1
  template <DecoderSizes S> static result<std::vector<owned_plan>> plans(const S& size, const generator_options& o) {
    if (o.slots < 1) return fail(errc::invalid_argument, "is not positive", "generator_options::slots", "give 1 or more");
    std::vector<owned_plan> all;
    const auto add = [&](std::string plan, const typename S::cached_logits& of) -> result<void> {
      auto p = plan_inference<T>(of, o.budget, true, o.decompose_all, o.stored);
      if (!p) return std::move(p).error();
      all.push_back({std::move(plan), *std::move(p)});
      return {};
    };
    if (auto r = add("decode", decoding(size, o)); !r) return r.error();
    for (const int tokens : buckets(size.context, o)) {
      if (tokens < 1) return fail(errc::invalid_argument, "is not positive", "generator_options::prefill_tokens", "give 1 or more");
      if (auto r = add("prefill " + std::to_string(tokens), {size, o.slots, tokens, 1}); !r) return r.error();
    }
    return all;
  }
  /// @error as `plans`, and as the device reports
  template <DecoderSizes S> static result<generator> open(const device<T>& on, const S& size, const generator_options& o = {}) {
    auto made = plans(size, o);
    if (!made) return std::move(made).error();
    return open(on, size, o, *std::move(made));
  }
  /// Loads plans that `plans` made for the same size and options.
  template <DecoderSizes S>
  static result<generator> open(const device<T>& on, const S& size, const generator_options& o, std::vector<owned_plan> made) {
    auto loaded = on.load(std::move(made));
    if (!loaded) return std::move(loaded).error();
    return generator(*std::move(loaded), size.vocab, size.context, o);
  }

  int slots() const { return int(slots_.size()); }
  session& loaded() { return session_; }
  const session& loaded() const { return session_; }
  /// The state dict and access to it, as training sessions have it (train/session.hpp), so that checkpoints can be restored.
  auto parameters() const { return session_.parameters(); }
  result<void> write(tensor_kind kind, std::size_t slot, std::span<const float> in) { return session_.write(kind, slot, in); }
  void initialize(std::uint64_t seed) { session_.initialize(seed); }

  /// Gives a slot a new sequence, of which the last `context` tokens are read. @error invalid_argument for no tokens or no such slot; as the device reports
  result<void> begin(int slot, std::span<const std::int32_t> tokens) {
    if (slot < 0 || slot >= slots())
      return fail(errc::invalid_argument, "is no slot", "slot " + std::to_string(slot), "give one below slots()");
    if (tokens.empty()) return fail(errc::invalid_argument, "has no tokens", "the prompt", "give at least one");
    slots_[std::size_t(slot)].assign(tokens);
    return read(slot);
  }
  /// Appends a token to each sequence; next[slot] < 0: to none. The run is one submission, besides those of sequences that have filled the context.
  /// @param next  (slots)  a slot with a token must have begun
  /// @error invalid_argument for another number of tokens, or a slot without a sequence; as the device reports
  result<void> append(std::span<const std::int32_t> next) {
    if (next.size() != slots_.size())
      return fail(errc::invalid_argument, "are not one of each slot", std::to_string(next.size()) + " tokens",
                  "give " + std::to_string(slots()));
    auto in = inputs(0);
    if (!in) return std::move(in).error();
    bool any = false;
    for (std::size_t k = 0; k < next.size(); ++k) {
      const bool given = next[k] >= 0;
      if (given && slots_[k].tokens().empty())
        return fail(errc::invalid_argument, "has no sequence", "slot " + std::to_string(k), "call begin first");
      const bool decodes = given && !slots_[k].full();
      in->put(k, decodes ? next[k] : 0, decodes ? std::int32_t(k) : -1, decodes ? std::int32_t(slots_[k].tokens().size()) : 0);
      any = any || decodes;
    }
    if (any) {
      if (auto r = session_.run_plan(0); !r) return r;
      auto rows = session_.template output<storage>("output", 0);  // (slots, V)
      if (!rows) return std::move(rows).error();
      for (std::size_t k = 0; k < next.size(); ++k)
        if (next[k] >= 0 && !slots_[k].full()) keep_logits(int(k), rows->subspan(k * vocab_, vocab_));
    }
    for (std::size_t k = 0; k < next.size(); ++k) {
      if (next[k] < 0) continue;
      const bool full = slots_[k].full();
      slots_[k].append(next[k]);
      if (!full) continue;
      if (auto r = read(int(k)); !r) return r;
    }
    return {};
  }
  /// The logits (V) after the last token of a slot, valid until the slot's next token.
  std::span<const float> logits(int slot) const { return std::span(logits_).subspan(std::size_t(slot) * vocab_, vocab_); }

  /// Continues all texts, as many at once as there are slots; a slot takes the next one as soon as its own has ended. Calls each(request, token) -> bool in the
  /// order in which tokens are drawn; false ends that text. @error as begin and append
  template <class Each> result<void> generate(std::span<const generation_request> requests, Each&& each) {
    std::vector<std::size_t> of(slots_.size(), requests.size());  // the request of each slot; the number of requests: none
    std::vector<std::int64_t> drawn(slots_.size(), 0);
    std::vector<std::int32_t> next(slots_.size());
    for (std::size_t first = 0, live = 1; live != 0;) {
      live = 0;
      for (std::size_t k = 0; k < of.size(); ++k) {
        next[k] = -1;
        for (; of[k] == requests.size() && first < requests.size(); ++first) {
          if (requests[first].tokens <= 0) continue;
          if (auto r = begin(int(k), requests[first].prompt); !r) return r;
          of[k] = first;
          drawn[k] = 0;
        }
        if (of[k] == requests.size()) continue;
        const generation_request& request = requests[of[k]];
        next[k] = draw_(logits(int(k)), request.draw, std::uint64_t(drawn[k]++));
        ++live;
        if (each(of[k], next[k]) && drawn[k] < request.tokens) continue;
        of[k] = requests.size();
        next[k] = -1;
      }
      if (std::any_of(next.begin(), next.end(), [](std::int32_t t) { return t >= 0; }))
        if (auto r = append(next); !r) return r;
    }
    return {};
  }

 private:
  session session_;
  std::size_t vocab_;
  std::vector<int> buckets_;
  std::vector<token_history> slots_;
  std::vector<float> logits_;  // (slots, V)
  train::sampler draw_;

  generator(session loaded, int vocab, int context, const generator_options& o)
      : session_(std::move(loaded)),
        vocab_(std::size_t(vocab)),
        buckets_(buckets(context, o)),
        slots_(std::size_t(o.slots), token_history(std::size_t(context))),
        logits_(std::size_t(o.slots) * vocab_) {}

  /// Sizes of prefill plans in ascending order, none beyond the context.
  static std::vector<int> buckets(int context, const generator_options& o) {
    std::vector<int> all = o.prefill_tokens;
    if (all.empty()) all.push_back(16);
    for (int& n : all) n = std::min(n, context);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  struct places {
    std::span<std::int32_t> tokens, sequence, position;
    void put(std::size_t row, std::int32_t token, std::int32_t slot, std::int32_t at) const {
      tokens[row] = token, sequence[row] = slot, position[row] = at;
    }
  };
  result<places> inputs(std::size_t plan) {
    auto tokens = session_.template input<std::int32_t>("tokens", plan), sequence = session_.template input<std::int32_t>("sequence", plan),
         position = session_.template input<std::int32_t>("position", plan);
    if (!tokens) return std::move(tokens).error();
    if (!sequence) return std::move(sequence).error();
    if (!position) return std::move(position).error();
    return places{*tokens, *sequence, *position};
  }
  void keep_logits(int slot, std::span<const storage> row) {
    std::transform(row.begin(), row.end(), logits_.begin() + std::ptrdiff_t(std::size_t(slot) * vocab_),
                   [](storage x) { return float(x); });
  }
  /// Fills the cache of a slot with all its tokens, part by part.
  result<void> read(int slot) {
    const std::span<const std::int32_t> all = slots_[std::size_t(slot)].tokens();
    for (std::size_t first = 0; first < all.size();) {
      std::size_t bucket = 0;
      while (bucket + 1 < buckets_.size() && std::size_t(buckets_[bucket]) < all.size() - first) ++bucket;
      const auto rows = std::size_t(buckets_[bucket]), n = std::min(rows, all.size() - first);
      auto in = inputs(1 + bucket);
      if (!in) return std::move(in).error();
      for (std::size_t k = 0; k < rows; ++k)
        in->put(k, k < n ? all[first + k] : 0, k < n ? std::int32_t(slot) : -1, k < n ? std::int32_t(first + k) : 0);
      auto last = session_.template input<std::int32_t>("rows", 1 + bucket);
      if (!last) return std::move(last).error();
      (*last)[0] = std::int32_t(n - 1);
      if (auto r = session_.run_plan(1 + bucket); !r) return r;
      first += n;
      if (first < all.size()) continue;
      auto row = session_.template output<storage>("output", 1 + bucket);  // (1, V)
      if (!row) return std::move(row).error();
      keep_logits(slot, *row);
    }
    return {};
  }
};

}  // namespace isotope
