#pragma once
/// The text of tokens as they come, up to a stop string.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <isotope/core/error.hpp>
#include <isotope/io/tokenizer.hpp>

namespace isotope {

/// Pieces of text hold whole characters. What may be the beginning of a stop string waits for the tokens that decide it; a stop string itself is not given out.
class text_stream {
 public:
  /// @param stops  empty strings stop nothing
  explicit text_stream(const io::tokenizer& t, std::vector<std::string> stops = {}) : decoder_(t, false), stops_(std::move(stops)) {
    std::erase_if(stops_, [](const std::string& s) { return s.empty(); });
  }

  /// Returns the text that the token makes certain. @error invalid_argument: an id that no token has
  result<std::string> add(std::int32_t token) {
    auto piece = decoder_.add(token);
    if (!piece) return piece;
    return taken(*piece);
  }
  /// Returns what is left at the end of the tokens: U+FFFD if the last character is incomplete. Nothing after a stop string.
  std::string finish() {
    std::string last = taken(decoder_.finish());
    if (!stopped_) last += std::exchange(held_, {});
    return last;
  }
  /// Whether a stop string has come; then no more text does.
  bool stopped() const { return stopped_; }

 private:
  io::stream_decoder decoder_;
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;

  std::string taken(const std::string& piece) {
    if (stopped_) return {};
    held_ += piece;
    std::size_t end = held_.npos;
    for (const std::string& s : stops_) end = std::min(end, held_.find(s));
    stopped_ = end != held_.npos;
    if (!stopped_) end = held_.size() - undecided();
    std::string out = held_.substr(0, end);
    held_.erase(0, end);
    return out;
  }
  /// The length of the longest end of the text that a stop string begins with.
  std::size_t undecided() const {
    std::size_t most = 0;
    for (const std::string& s : stops_)
      for (std::size_t n = std::min(s.size() - 1, held_.size()); n > most; --n)
        if (held_.ends_with(std::string_view(s).substr(0, n))) most = n;
    return most;
  }
};

}  // namespace isotope
