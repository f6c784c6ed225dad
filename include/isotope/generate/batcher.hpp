#pragma once
/// Continues many token sequences at once on a device that draws the tokens itself: several of them in one submission, without any data from the host.
#include <isotope/generate/drawing_model.hpp>
#include <isotope/generate/loaded_decoder.hpp>
#include <isotope/generate/sampling.hpp>
#include <isotope/generate/sequence_snapshot.hpp>
#include <isotope/generate/token_history.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isotope {

struct batcher_options {
  int slots = 1;                                    // sequences that are continued at once, each with a cache
  int tokens_per_submit = 8;                        // drawn in one submission; the host sees them at its end
  std::vector<int> prefill_tokens = {16, 64, 256};  // sizes of the plans that read prompts: a run takes tokens of any number of prompts
  std::int64_t budget = 0;                          // bytes; 0: no limit
  bool decompose_all = false;                       // as the parameter of plan_inference
  weight_storage stored = nullptr;                  // likewise
  bool a8 = false;                                  // likewise
};

/// A text to continue: its tokens, how many to add, how they are drawn, and the tokens that end it, which are drawn, too. The continuation depends on these
/// alone, not on other requests or its slot, nor, where all rows of a product have the same bits in any run (f32 on the processor), on a prefix.
struct batch_request {
  std::span<const std::int32_t> prompt;
  std::int64_t tokens = 0;
  sampling_options draw{};
  std::span<const std::int32_t> ends{};
  const sequence_snapshot* prefix =
      nullptr;  // of a text that begins alike, such as a system's prompt: what both have in common is not read again
};

/// A loaded decoder with `slots` sequences, and what the host knows of them: the tokens that came back.
///
/// A sequence that has filled the context loses its oldest quarter when a token is appended, and what is left is read again, as in `generator`.
template <Target T> class batcher : public loaded_decoder<T, batcher<T>, batcher_options> {
  using base = loaded_decoder<T, batcher, batcher_options>;
  friend base;

 public:
  using typename base::session;

  int slots() const { return int(slots_.size()); }

  /// Continues all texts, as many at once as there are slots; a slot takes the next one as soon as its own has ended. Calls each(request, token) -> bool for
  /// every drawn token, those of a request in order; false ends that request. Of a prompt, the last `context` tokens are read. What was admitted before is
  /// cancelled.
  /// @error invalid_argument for a prompt without tokens; model_mismatch: a prefix of another model; as the device reports
  template <class Each> result<void> generate(std::span<const batch_request> requests, Each&& each) {
    for (sequence& s : slots_) s.live = false;
    for (const batch_request& r : requests)
      if (r.tokens > 0 && r.prompt.empty())
        return fail(errc::invalid_argument, "has no tokens", "prompt " + std::to_string(&r - requests.data()), "give at least one");
    for (std::size_t next = 0;;) {
      for (std::size_t k = 0; k < slots_.size(); ++k) {
        while (!slots_[k].live && next < requests.size()) {
          if (requests[next].tokens > 0)
            if (auto r = begin(k, requests[next], next); !r) return r;
          ++next;
        }
      }
      if (!busy()) return {};
      if (auto r = advance(each); !r) return r;
    }
  }

  /// Whether a slot has a request.
  bool busy() const {
    return std::any_of(slots_.begin(), slots_.end(), [](const sequence& s) { return s.live; });
  }
  /// The first slot without a request, or -1.
  int idle_slot() const {
    const auto free = std::find_if(slots_.begin(), slots_.end(), [](const sequence& s) { return !s.live; });
    return free == slots_.end() ? -1 : int(free - slots_.begin());
  }
  /// Gives a request to the first slot without one, at any time between two calls of `advance`, and returns the slot. The prompt and the end tokens are
  /// copied. The tokens of a request do not depend on when it is admitted.
  ///
  /// @param number  what `advance` passes on with its tokens
  /// @error invalid_argument: a prompt without tokens, no token to add, or no idle slot; model_mismatch: a prefix of another model
  result<int> admit(const batch_request& request, std::size_t number) {
    if (request.prompt.empty()) return fail(errc::invalid_argument, "has no tokens", "the prompt", "give at least one");
    if (request.tokens <= 0)
      return fail(errc::invalid_argument, "asks for " + std::to_string(request.tokens) + " tokens", "the request", "ask for 1 or more");
    const auto slot = free_slot();
    if (!slot) return slot;
    if (auto r = begin(std::size_t(*slot), request, number); !r) return std::move(r).error();
    return slot;
  }
  /// Ends the request of a slot; a slot without one stays idle. Not to be called by what takes the tokens, which returns false instead.
  void cancel(int slot) { slots_[std::size_t(slot)].live = false; }
  /// Copies the sequence of a slot to host memory, between two calls of `advance`: of a slot that has a request, or has had one and no other since. `cancel` then
  /// frees the slot for other texts. @error invalid_argument: the slot never had one; as the device reports
  result<sequence_snapshot> save(int slot) {
    const bool there = slot >= 0 && slot < slots() && !slots_[std::size_t(slot)].text.tokens().empty();
    if (!there) return fail(errc::invalid_argument, "has no sequence", "slot " + std::to_string(slot), "save one that has had a request");
    const sequence& s = slots_[std::size_t(slot)];
    cache_states caches(session_);
    auto rows = caches.read(std::size_t(slot), s.read);
    if (!rows) return std::move(rows).error();
    sequence_snapshot all{caches.format(),
                          {s.text.tokens().begin(), s.text.tokens().end()},
                          s.read,
                          *std::move(rows),
                          s.live,
                          s.ready,
                          s.wanted,
                          s.drawn,
                          s.ends,
                          {},
                          {}};
    std::copy_n(sampling_.begin() + std::ptrdiff_t(slot) * op::sample::numbers, op::sample::numbers, all.sampling.begin());
    std::copy_n(key_.begin() + std::ptrdiff_t(slot) * op::sample::keys, op::sample::keys, all.key.begin());
    return all;
  }
  /// Gives a saved request to the first slot without one, of this or another batcher of the same model, and returns the slot. It goes on with the tokens that it
  /// would have drawn without the interruption.
  ///
  /// @param number  as of `admit`
  /// @error invalid_argument: the request had ended, or no slot is idle; model_mismatch: of another model; as the device reports
  result<int> restore(const sequence_snapshot& saved, std::size_t number) {
    if (!saved.live)
      return fail(errc::invalid_argument, "had ended", "the request of the snapshot", "give the snapshot to another request as its prefix");
    const auto slot = free_slot();
    if (!slot) return slot;
    const auto k = std::size_t(*slot);
    if (auto r = put_cache(k, saved, saved.read); !r) return std::move(r).error();
    if (saved.draws)
      if (auto r = put_drawn(k, saved.tokens); !r) return std::move(r).error();
    sequence& s = slots_[k];
    s.number = number;
    s.wanted = saved.wanted;
    s.drawn = saved.drawn;
    s.ends = saved.ends;
    s.text.assign(saved.tokens);
    s.read = saved.read;
    s.ready = saved.draws;
    s.live = true;
    std::copy(saved.sampling.begin(), saved.sampling.end(), sampling_.begin() + std::ptrdiff_t(k) * op::sample::numbers);
    std::copy(saved.key.begin(), saved.key.end(), key_.begin() + std::ptrdiff_t(k) * op::sample::keys);
    return slot;
  }
  /// Draws tokens for all slots whose prompts are read, then reads a run of prompts: at most as many tokens as the largest plan takes, so that a prompt holds
  /// other requests up for no longer than a run. While none is read, one submission draws up to `tokens_per_submit` tokens of each slot.
  ///
  /// @param each  each(number of the request, token) -> bool; false ends that request
  /// @error as the device reports
  template <class Each> result<void> advance(Each&& each) {
    const auto deliver = [&](std::size_t k, std::int32_t token) { take(slots_[k], token, each); };
    const bool reads = std::any_of(slots_.begin(), slots_.end(), [](const sequence& s) { return s.reads(); });
    const bool draws = std::any_of(slots_.begin(), slots_.end(), [](const sequence& s) { return s.draws(); });
    if (draws)
      if (auto r = decode(reads ? 1 : steps(), deliver); !r) return r;
    return reads ? read(deliver) : result<void>{};
  }

 private:
  struct sequence {
    explicit sequence(std::size_t context) : text(context) {}
    bool live = false;       // it has a request
    std::size_t number = 0;  // of the request
    std::int64_t wanted = 0;
    std::vector<std::int32_t> ends;
    token_history text;
    std::size_t read = 0;  // tokens of the text whose keys and values are in the cache; all but the newest one while the slot draws
    std::int64_t drawn = 0;
    bool ready = false;  // the newest token was drawn from the logits of those before
    bool reads() const { return live && !ready; }
    bool draws() const { return live && ready; }
  };

  static constexpr std::string_view options_name = "batcher_options";
  using base::context_, base::prefill_, base::session_;

  int most_steps_;
  std::vector<sequence> slots_;
  // What runs take from the host, by name of the input.
  std::vector<float> sampling_;
  std::vector<std::int32_t> key_, live_, history_, newest_, rows_, draw_, tokens_, sequence_, position_;

  batcher(session loaded, int vocab, int context, const batcher_options& o)
      : base(std::move(loaded), vocab, context, o), most_steps_(o.tokens_per_submit) {
    const auto n = std::size_t(o.slots);
    for (std::size_t k = 0; k < n; ++k) slots_.emplace_back(std::size_t(context));
    sampling_.assign(n * std::size_t(op::sample::numbers), 1.0f);
    key_.assign(n * std::size_t(op::sample::keys), 0);
    for (auto* v : {&live_, &newest_, &rows_, &draw_}) v->assign(n, -1);
    history_.assign(n * std::size_t(context), 0);
    for (auto* v : {&tokens_, &sequence_, &position_}) v->reserve(std::size_t(prefill_.back()));
  }

  template <class S> static auto model_of(const S& size, const batcher_options& o, int tokens, bool reads) {
    using logits = typename S::cached_logits;
    return drawing_model<logits>{logits{size, o.slots, tokens, reads ? o.slots : 0}, o.tokens_per_submit, reads};
  }

  result<int> free_slot() const {
    const int slot = idle_slot();
    if (slot >= 0) return slot;
    return fail(errc::invalid_argument, "have requests", "all " + std::to_string(slots()) + " slots", "wait until idle_slot() returns one");
  }
  result<void> begin(std::size_t k, const batch_request& request, std::size_t number) {
    sequence& s = slots_[k];
    s.number = number;
    s.wanted = request.tokens;
    s.ends.assign(request.ends.begin(), request.ends.end());
    s.text.assign(request.prompt);
    s.read = 0;
    s.drawn = 0;
    s.ready = false;
    write_options(request.draw, std::int32_t(request.prompt.size() - s.text.tokens().size()),
                  std::span(sampling_).subspan(k * 4).template first<op::sample::numbers>(),
                  std::span(key_).subspan(k * 4).template first<op::sample::keys>());
    if (request.prefix != nullptr) {
      const auto text = s.text.tokens().first(s.text.tokens().size() - 1);  // the last token is read, so that it has logits
      const auto known = std::span(request.prefix->tokens).first(request.prefix->read);
      const auto common = std::size_t(std::mismatch(text.begin(), text.end(), known.begin(), known.end()).first - text.begin());
      if (auto r = put_cache(k, *request.prefix, common); !r) return r;
      s.read = common;
    }
    s.live = true;
    return {};
  }
  /// Gives a slot the keys and values of the first tokens of a snapshot.
  result<void> put_cache(std::size_t k, const sequence_snapshot& saved, std::size_t tokens) {
    cache_states caches(session_);
    if (caches.format() != saved.format)
      return fail(errc::model_mismatch, "has caches of other sizes", "the snapshot of a sequence",
                  "give one of a batcher of the same model");
    return caches.write(k, tokens, saved.cache, saved.read);
  }
  /// Tells the device the text of a slot that draws.
  result<void> put_drawn(std::size_t k, std::span<const std::int32_t> text) {
    const auto newest = std::int32_t(text.size()) - 1;
    const auto put = [&](std::string_view label, std::size_t at, std::span<const std::int32_t> x) -> result<void> {
      for (std::size_t i = 0; i < session_.states().size(); ++i)
        if (session_.states()[i].label.view() == label)
          return state_parts(session_).write(i, std::int64_t(at * sizeof x[0]), std::as_bytes(x));
      return fail(errc::not_found, "the model has no such state", std::string(label), "use the model of batcher::plans");
    };
    if (auto r = put("drawn.history", k * std::size_t(context_), text); !r) return r;
    if (auto r = put("drawn.recent", k, text.last(1)); !r) return r;
    return put("drawn.position", k, {&newest, 1});
  }
  /// Appends a drawn token to its text, and ends the request where it was the last one.
  template <class Each> void take(sequence& s, std::int32_t token, Each& each) {
    if (const std::size_t before = s.text.tokens().size(); s.text.full()) {
      s.text.append(token);
      s.read = 0;
      s.ready = false;  // positions have changed: all is read again
      key_[std::size_t(&s - slots_.data()) * 4 + op::sample::offset] += std::int32_t(before + 1 - s.text.tokens().size());
    } else {
      s.text.append(token);
      s.read = s.text.tokens().size() - 1;
      s.ready = true;
    }
    const bool goes_on = each(s.number, token);
    if (!goes_on || ++s.drawn >= s.wanted || std::find(s.ends.begin(), s.ends.end(), token) != s.ends.end()) s.live = false;
  }
  /// How many tokens a submission may draw: no text may outgrow the context in it, and none is drawn that no request wants.
  int steps() const {
    std::int64_t most = most_steps_, wanted = 1;
    for (const sequence& s : slots_)
      if (s.draws()) {
        most = std::min(most, std::int64_t(context_) - std::int64_t(s.text.tokens().size()) + 1);
        wanted = std::max(wanted, s.wanted - s.drawn);
      }
    return int(std::min(most, wanted));
  }
  template <class E> result<void> set(std::string_view label, std::size_t plan, const std::vector<E>& x) {
    return session_.set(label, std::span<const E>(x), plan);
  }
  result<void> set_draws(std::size_t plan) {
    auto r = set("sampling", plan, sampling_);
    return r ? set("key", plan, key_) : std::move(r);
  }
  /// Draws tokens for all slots that do not read, in one submission.
  template <class Deliver> result<void> decode(int times, const Deliver& deliver) {
    for (std::size_t k = 0; k < slots_.size(); ++k) live_[k] = slots_[k].draws() ? std::int32_t(k) : -1;
    if (auto r = set("live", 0, live_); !r) return r;
    if (auto r = set_draws(0); !r) return r;
    if (auto r = session_.run_plan_times(0, times); !r) return r;
    auto drawn = session_.template output<std::int32_t>("output", 0);  // (recent, slots), the newest first
    if (!drawn) return std::move(drawn).error();
    for (std::size_t k = 0; k < slots_.size(); ++k)
      for (int i = times; live_[k] >= 0 && i-- > 0 && slots_[k].draws();) deliver(k, (*drawn)[std::size_t(i) * slots_.size() + k]);
    return {};
  }
  /// Reads tokens of all prompts that are not whole in the caches, as many as the largest plan takes, and draws the first token of those that end.
  template <class Deliver> result<void> read(const Deliver& deliver) {
    std::size_t waiting = 0;
    for (const sequence& s : slots_) waiting += s.reads() ? s.text.tokens().size() - s.read : 0;
    const std::size_t size = this->prefill_of(waiting), plan = 1 + size, room = std::size_t(prefill_[size]);
    for (auto* v : {&tokens_, &sequence_, &position_}) v->clear();
    for (std::size_t k = 0; k < slots_.size(); ++k) {
      sequence& s = slots_[k];
      const auto text = s.text.tokens();
      draw_[k] = -1;
      rows_[k] = 0;
      newest_[k] = s.live ? std::int32_t(text.size()) - 1 : -1;
      if (s.live) std::copy(text.begin(), text.end(), history_.begin() + std::ptrdiff_t(k * std::size_t(context_)));
      for (; s.reads() && s.read < text.size() && tokens_.size() < room; ++s.read) {
        if (s.read + 1 == text.size()) draw_[k] = std::int32_t(k), rows_[k] = std::int32_t(tokens_.size());
        tokens_.push_back(text[s.read]);
        sequence_.push_back(std::int32_t(k));
        position_.push_back(std::int32_t(s.read));
      }
    }
    tokens_.resize(room, 0);
    sequence_.resize(room, -1);
    position_.resize(room, 0);
    const std::array<std::pair<std::string_view, const std::vector<std::int32_t>*>, 7> all{{{"tokens", &tokens_},
                                                                                            {"sequence", &sequence_},
                                                                                            {"position", &position_},
                                                                                            {"rows", &rows_},
                                                                                            {"draw", &draw_},
                                                                                            {"history", &history_},
                                                                                            {"newest", &newest_}}};
    for (const auto& [label, x] : all)
      if (auto r = set(label, plan, *x); !r) return r;
    if (auto r = set_draws(plan); !r) return r;
    if (auto r = session_.run_plan(plan); !r) return r;
    auto drawn = session_.template output<std::int32_t>("output", plan);
    if (!drawn) return std::move(drawn).error();
    for (std::size_t k = 0; k < slots_.size(); ++k)
      if (draw_[k] >= 0) deliver(k, (*drawn)[k]);
    return {};
  }
};

}  // namespace isotope
