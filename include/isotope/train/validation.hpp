#pragma once
/// The validation loss: every token of the split is predicted once, so that the result depends on neither the seed nor the batch size.
#include <isotope/train/session.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace isotope::train {

/// The split as consecutive, non-overlapping windows of `length` tokens: their number, and a function that fills the rows of a batch from window
/// `first` on. Rows past the last window get targets of -1. It returns the number of rows that hold a window.
template <class D>
concept HasWindows = requires(const D& d, std::int64_t length) {
  { d.validation_windows(length) } -> std::convertible_to<std::int64_t>;
};
template <class D>
concept HasValidationBatches = requires(const D& d, std::int64_t first, std::int64_t length, std::span<std::int32_t> out) {
  { d.validation_batch(first, length, out, out) } -> std::convertible_to<std::int64_t>;
};
template <class D>
concept ValidationData = HasWindows<D> && HasValidationBatches<D>;

/// loss = 1/(W S) sum_{w<W} sum_{s<S} -log p(split[wS + s + 1] | split[wS .. wS + s]),   W = windows of S tokens in the split
///
/// A batch's mean is weighted by its rows, so a last batch that is not full counts for the rows that it holds.
/// @param batch   rows B of the session's plan
/// @param length  columns S of the session's plan
/// @return        nothing if the split holds no whole window
template <CanEvaluate S, ValidationData Data>
std::optional<double> validation_loss(S& session, const Data& data, std::int64_t batch, std::int64_t length) {
  const std::int64_t windows = data.validation_windows(length);
  if (windows <= 0) return std::nullopt;
  std::vector<std::int32_t> tokens(std::size_t(batch * length)), targets(tokens.size());  // (B,S)
  double sum = 0;
  for (std::int64_t first = 0; first < windows; first += batch) {
    const std::int64_t rows = data.validation_batch(first, length, tokens, targets);
    sum += session.evaluate(isotope::batch{tokens, targets}) * double(rows);
  }
  return sum / double(windows);
}

}  // namespace isotope::train
