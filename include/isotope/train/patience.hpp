#pragma once
/// Which validation loss is the best, and when to stop waiting for a better one.
#include <cstdint>
#include <limits>

namespace isotope::train {

/// Part of a checkpoint: a resumed run goes on counting where it stopped.
struct best_loss {
  double value = std::numeric_limits<double>::infinity();
  std::int64_t step = 0;
  std::int64_t evals_since = 0;

  /// Takes one validation loss; true when it is the best so far. NaN is never better.
  constexpr bool take(double loss, std::int64_t at_step) {
    if (loss < value) {
      value = loss, step = at_step, evals_since = 0;
      return true;
    }
    ++evals_since;
    return false;
  }

  /// `patience` evaluations in a row brought nothing better; 0 waits for ever.
  constexpr bool exhausted(std::int64_t patience) const { return patience > 0 && evals_since >= patience; }

  friend constexpr bool operator==(const best_loss&, const best_loss&) = default;
};

}  // namespace isotope::train
