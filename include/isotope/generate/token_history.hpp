#pragma once
/// The tokens of a sequence that a model with a bounded context sees.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace isotope {

class token_history {
 public:
  /// @param context  how many tokens the model sees at most, at least 1
  explicit token_history(std::size_t context) : context_(context) { tokens_.reserve(context); }
  token_history(const token_history& o) : token_history(o.context_) { assign(o.tokens()); }
  token_history& operator=(const token_history& o) = delete;
  token_history(token_history&&) = default;
  token_history& operator=(token_history&&) = default;

  std::span<const std::int32_t> tokens() const { return tokens_; }
  bool full() const { return tokens_.size() == context_; }
  /// Takes the last `context` of these tokens.
  void assign(std::span<const std::int32_t> all) {
    const auto seen = all.last(std::min(all.size(), context_));
    tokens_.assign(seen.begin(), seen.end());
  }
  /// Appends a token. A full history loses its oldest quarter, at least one token, first. Allocates nothing.
  void append(std::int32_t token) {
    if (full()) tokens_.erase(tokens_.begin(), tokens_.begin() + std::ptrdiff_t(std::max<std::size_t>(1, context_ / 4)));
    tokens_.push_back(token);
  }

 private:
  std::size_t context_;
  std::vector<std::int32_t> tokens_;
};

}  // namespace isotope
