#pragma once
/// How many steps a training loop keeps in flight on a device that works beside the processor.
#include <algorithm>
#include <cstddef>

namespace isotope::train {

/// A thread that sleeps through a step finds its caches cold and pays several times for the next submission. So the loop sleeps until half of the steps in flight
/// have ended, and then submits as many one after the other.
class run_ahead {
 public:
  static constexpr double most_seconds = 1;  // of work in flight: a loop that is interrupted ends so much later

  explicit run_ahead(std::size_t frames) : frames_(frames) {}

  /// How many steps may be in flight: one until it is known how long a step takes.
  std::size_t room() const {
    if (seconds_ <= 0) return 1;
    return std::clamp<std::size_t>(std::size_t(std::min(most_seconds / seconds_, 1e6)), 1, frames_);
  }
  /// How many steps to wait for where all of the room is taken.
  std::size_t half() const { return (room() + 1) / 2; }
  /// A step took this time.
  void took(double seconds) { seconds_ = seconds; }

 private:
  std::size_t frames_;
  double seconds_ = 0;  // of a step
};

}  // namespace isotope::train
