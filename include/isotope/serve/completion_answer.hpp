#pragma once
/// The answer to a completion, made of the pieces of its texts.
#include <isotope/serve/api_error.hpp>
#include <isotope/serve/replies.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isotope::serve {

/// A whole answer.
struct api_reply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  int retry_after = 0;  // seconds; 0: not said
};

/// Where an answer goes: either `whole`, once, or `part` for the events of a stream. Any thread may call them.
struct answer_to {
  std::function<void(api_reply)> whole;
  std::function<void(std::string events, bool last)> part;
};

/// Collects the pieces of the texts of one request, and passes events on if the answer is a stream. Used by one thread.
class completion_answer {
 public:
  completion_answer(completion_head head, std::size_t texts, token_usage used, bool stream, bool include_usage, answer_to to)
      : head_(std::move(head)),
        texts_(texts),
        left_(texts),
        used_(used),
        stream_(stream),
        include_usage_(include_usage),
        to_(std::move(to)) {}

  /// Takes a piece of text k.
  void add(std::size_t k, const text_piece& piece) {
    if (over_) return;
    auto& [text, end] = texts_[k];
    used_.completion += 1;
    end = piece.end;
    left_ -= piece.last() ? 1 : 0;
    over_ = left_ == 0;
    if (!stream_) {
      text += piece.text;
      if (over_) to_.whole({.body = completion_reply(head_, texts_, used_)});
      return;
    }
    std::string events;
    if (head_.chat && !begun_) events = completion_chunk(head_, k, {}, text_end::none, true, include_usage_);
    if (!piece.text.empty() || (piece.last() && !head_.chat))
      events += completion_chunk(head_, k, piece.text, head_.chat ? text_end::none : piece.end, false, include_usage_);
    if (piece.last() && head_.chat) events += completion_chunk(head_, k, {}, piece.end, false, include_usage_);
    if (over_ && include_usage_) events += usage_chunk(head_, used_);
    if (over_) events += last_event;
    if (events.empty()) return;
    begun_ = true;
    to_.part(std::move(events), over_);
  }
  /// Ends the answer with an error: of a stream that has begun, as its last event.
  void failed(const failure& f) {
    if (std::exchange(over_, true)) return;
    const api_error e = server_error(f);
    if (begun_) to_.part(event_of(e.body()), true);
    else to_.whole({.status = e.status, .body = e.body()});
  }

 private:
  completion_head head_;
  std::vector<std::pair<std::string, text_end>> texts_;  // of a stream without text
  std::size_t left_;
  token_usage used_;
  bool stream_, include_usage_;
  answer_to to_;
  bool begun_ = false, over_ = false;
};

}  // namespace isotope::serve
