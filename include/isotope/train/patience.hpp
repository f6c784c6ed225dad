#pragma once
/// Tracks the best validation loss and decides when to stop waiting for a better one.
#include <cstdint>
#include <limits>

namespace isotope::train {

/// This state is part of a checkpoint: a resumed run continues counting where it stopped.
struct best_loss {
  double value = std::numeric_limits<double>::infinity();
  std::int64_t step = 0;
  std::int64_t evals_since = 0;

  /// Takes one validation loss and returns whether it is the best so far. NaN is never better.
  constexpr bool take(double loss, std::int64_t at_step) {
    if (loss < value) {
      value = loss, step = at_step, evals_since = 0;
      return true;
    }
    ++evals_since;
    return false;
  }

  /// Whether `patience` evaluations in a row brought no better loss; with 0 it is never true.
  constexpr bool exhausted(std::int64_t patience) const { return patience > 0 && evals_since >= patience; }

  friend constexpr bool operator==(const best_loss&, const best_loss&) = default;
};

}  // namespace isotope::train
