#pragma once
/// Generates text with a decoder: each token is computed once, and its keys and values are kept in caches for the tokens after it.
#include <isotope/generate/loaded_decoder.hpp>
#include <isotope/generate/token_history.hpp>
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
  bool a8 = false;                          // likewise
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
template <Target T> class generator : public loaded_decoder<T, generator<T>, generator_options> {
  using base = loaded_decoder<T, generator, generator_options>;
  friend base;

 public:
  using typename base::session;
  using storage = typename T::precision::storage;

  int slots() const { return int(slots_.size()); }

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
      const std::size_t V = rows->size() / slots_.size();
      for (std::size_t k = 0; k < next.size(); ++k)
        if (next[k] >= 0 && !slots_[k].full()) keep_logits(int(k), rows->subspan(k * V, V));
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
  std::span<const float> logits(int slot) const {
    const std::size_t V = logits_.size() / slots_.size();
    return std::span(logits_).subspan(std::size_t(slot) * V, V);
  }

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
  static constexpr std::string_view options_name = "generator_options";
  using base::prefill_, base::session_;

  std::vector<token_history> slots_;
  std::vector<float> logits_;  // (slots, V)
  train::sampler draw_;

  generator(session loaded, int vocab, int context, const generator_options& o)
      : base(std::move(loaded), vocab, context, o),
        slots_(std::size_t(o.slots), token_history(std::size_t(context))),
        logits_(std::size_t(o.slots) * std::size_t(vocab)) {}

  template <class S> static auto model_of(const S& size, const generator_options& o, int tokens, bool reads) {
    return typename S::cached_logits{size, o.slots, tokens, reads ? 1 : 0};
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
    std::transform(row.begin(), row.end(), logits_.begin() + std::ptrdiff_t(std::size_t(slot) * row.size()),
                   [](storage x) { return float(x); });
  }
  /// Fills the cache of a slot with all its tokens, part by part.
  result<void> read(int slot) {
    const std::span<const std::int32_t> all = slots_[std::size_t(slot)].tokens();
    for (std::size_t first = 0; first < all.size();) {
      const std::size_t size = this->prefill_of(all.size() - first), plan = 1 + size;
      const auto rows = std::size_t(prefill_[size]), n = std::min(rows, all.size() - first);
      auto in = inputs(plan);
      if (!in) return std::move(in).error();
      for (std::size_t k = 0; k < rows; ++k)
        in->put(k, k < n ? all[first + k] : 0, k < n ? std::int32_t(slot) : -1, k < n ? std::int32_t(first + k) : 0);
      auto last = session_.template input<std::int32_t>("rows", plan);
      if (!last) return std::move(last).error();
      (*last)[0] = std::int32_t(n - 1);
      if (auto r = session_.run_plan(plan); !r) return r;
      first += n;
      if (first < all.size()) continue;
      auto row = session_.template output<storage>("output", plan);  // (1, V)
      if (!row) return std::move(row).error();
      keep_logits(slot, *row);
    }
    return {};
  }
};

}  // namespace isotope
