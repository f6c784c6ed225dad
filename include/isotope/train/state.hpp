#pragma once
/// What a run must remember besides its tensors to continue with the same bits. It has no clock, no path and no option of one process.
#include <isotope/train/patience.hpp>

#include <cstdint>
#include <optional>

namespace isotope::train {

struct run_state {
  std::int64_t step = 0;              // optimizer steps finished: also the cursor into the data
  std::int64_t skipped = 0;           // of these, steps that updated nothing
  std::int64_t skipped_in_a_row = 0;  // up to `step`
  std::int64_t evaluated_at = -1;     // step of `val_loss`
  std::optional<double> val_loss;     // the latest
  best_loss best;

  friend bool operator==(const run_state&, const run_state&) = default;
};

}  // namespace isotope::train
