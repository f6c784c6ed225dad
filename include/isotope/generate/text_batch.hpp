#pragma once
/// Texts that are continued at once: they may come and go at any time.
#include <isotope/generate/batcher.hpp>
#include <isotope/generate/text_piece.hpp>
#include <isotope/generate/text_request.hpp>
#include <isotope/generate/text_stream.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isotope {

/// The texts of a batcher's slots. A piece holds whole characters, and comes as soon as no stop string can begin in it. A text depends on its prompt and request
/// alone. The batcher and the tokenizer must outlive this, and nothing else may use the batcher meanwhile; what it had admitted before is cancelled.
template <Target T> class text_batch {
 public:
  /// @param ends  ids that end a text
  text_batch(batcher<T>& batch, const io::tokenizer& words, std::span<const std::int32_t> ends)
      : batch_(batch), words_(words), ends_(ends.begin(), ends.end()), texts_(std::size_t(batch.slots())) {
    for (int k = 0; k < batch.slots(); ++k) batch_.cancel(k);
  }
  text_batch(const text_batch&) = delete;
  text_batch& operator=(const text_batch&) = delete;
  ~text_batch() {
    for (int k = 0; k < batch_.slots(); ++k) batch_.cancel(k);
  }

  bool busy() const { return batch_.busy(); }
  bool has_room() const { return batch_.idle_slot() >= 0; }
  /// Texts that are being continued.
  std::size_t live() const {
    return std::size_t(std::count_if(texts_.begin(), texts_.end(), [](const std::optional<live_text>& t) { return t.has_value(); }));
  }

  /// Begins to continue a prompt, and returns its slot. @param number  what `advance` passes on with its pieces; without: the slot
  /// @error as batcher::admit
  result<int> admit(std::span<const std::int32_t> prompt, const text_request& how, std::optional<std::size_t> number = {}) {
    std::vector<std::int32_t> ends;
    if (!how.ignore_end) {
      ends = ends_;
      ends.insert(ends.end(), how.ends.begin(), how.ends.end());
    }
    auto slot = batch_.admit({prompt, how.tokens, how.draw(), ends}, std::size_t(batch_.idle_slot()));
    if (!slot) return slot;
    texts_[std::size_t(*slot)].emplace(
        live_text{text_stream(words_, how.stop), number.value_or(std::size_t(*slot)), how.tokens, 0, std::move(ends)});
    return slot;
  }
  /// Ends the text of a slot at once; no more pieces of it come. Not to be called by what takes the pieces, which returns false instead.
  void cancel(int slot) {
    batch_.cancel(slot);
    texts_[std::size_t(slot)].reset();
  }
  /// Draws tokens as batcher::advance does. Calls each(number, const text_piece&) -> bool for every token; false ends that text.
  /// @error as the device reports
  template <class Each> result<void> advance(Each&& each) {
    return batch_.advance([&](std::size_t slot, std::int32_t token) { return take(slot, token, each); });
  }

 private:
  struct live_text {
    text_stream stream;
    std::size_t number;
    std::int64_t wanted, drawn;
    std::vector<std::int32_t> ends;
  };

  batcher<T>& batch_;
  const io::tokenizer& words_;
  std::vector<std::int32_t> ends_;
  std::vector<std::optional<live_text>> texts_;  // of the slots

  template <class Each> bool take(std::size_t slot, std::int32_t token, Each& each) {
    live_text& t = *texts_[slot];
    text_piece piece{.text = {}, .end = text_end::none, .drawn = ++t.drawn, .wrong = nullptr};
    auto text = t.stream.add(token);
    if (!text) {
      piece.end = text_end::failed;
      piece.wrong = &text.error();
    } else {
      const bool ends = std::find(t.ends.begin(), t.ends.end(), token) != t.ends.end();
      if (t.stream.stopped() || ends) piece.end = text_end::stop;
      else if (t.drawn == t.wanted) piece.end = text_end::length;
      if (piece.last()) *text += t.stream.finish();
      if (t.stream.stopped()) piece.end = text_end::stop;  // what was held back became a stop string
      piece.text = *text;
    }
    const bool goes_on = bool(each(t.number, std::as_const(piece))) && !piece.last();
    if (!goes_on) texts_[slot].reset();
    return goes_on;
  }
};

}  // namespace isotope
