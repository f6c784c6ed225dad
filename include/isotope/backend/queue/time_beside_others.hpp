#pragma once
/// Times variants of a step on a device that other programs use meanwhile, as a processor.
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../../core/error.hpp"

namespace isotope {

/// Seconds of a clock of the host that nobody sets. Without <chrono>, which programs for the processor would parse for nothing else.
inline double monotonic_seconds() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// Sets the times of variants to the least of rounds in each of which all run one after the other, since other programs only make a run longer: of `rounds` rounds
/// at least, and of up to 40 that fit 20 ms. Those that take twice as long leave once there are three times of each, those that are a fifth slower after the least
/// number of rounds. The last one needs no more rounds.
///
/// @param timer    a VariantTimer
/// @param all      timed_variant: those whose `seconds` are less than 0 are not timed, and those that leave get -1
/// @param several  a run of each
template <class Timer, class Variant>
result<void> time_beside_others(Timer& timer, std::vector<Variant>& all, const std::vector<typename Timer::run>& several, int rounds) {
  constexpr double most_seconds = 0.02;
  constexpr int most_rounds = 40;
  const double end = monotonic_seconds() + most_seconds;
  for (int round = 1; round <= rounds || (round <= most_rounds && monotonic_seconds() < end); ++round) {
    double least = 0;
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (all[k].seconds < 0) continue;
      auto t = timer.seconds(several[k]);
      if (!t) return t.error();
      all[k].seconds = all[k].seconds == 0 ? *t : std::min(all[k].seconds, *t);
      if (least == 0 || all[k].seconds < least) least = all[k].seconds;
    }
    int left = 0;
    for (auto& v : all) {
      if (round >= 3 && v.seconds > (round < rounds ? 2 : 1.2) * least) v.seconds = -1;
      left += v.seconds > 0 ? 1 : 0;
    }
    if (left == 1) break;
  }
  return {};
}

}  // namespace isotope
