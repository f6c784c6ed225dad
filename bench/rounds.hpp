#pragma once
/// Compares things that run on a machine whose speed changes while they are measured: in short rounds in which each runs once.
#include <isotope/isotope.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "measure.hpp"

namespace bench {

/// Runs `count` variants by turns: in each round each one once, and the next round begins with the next one.
///
/// @param count     variants
/// @param least     rounds
/// @param most      seconds after which no further round begins; until then there are more
/// @param run_one   result<double>(std::size_t variant): its seconds in this round
/// @return          (count, rounds) seconds
template <class RunOne>
isotope::result<std::vector<std::vector<double>>> interleaved(std::size_t count, int least, double most, const RunOne& run_one) {
  std::vector<std::vector<double>> seconds_of(count);
  const double end = seconds() + most;
  for (std::size_t round = 0; round < std::size_t(least) || seconds() < end; ++round)
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t variant = (k + round) % count;
      const auto t = run_one(variant);
      if (!t) return t.error();
      seconds_of[variant].push_back(*t);
    }
  return seconds_of;
}

/// How many times as long a takes as b, by the least of their times: other programs only make a run longer, and some rounds are free of them.
inline double ratio_of_least(const std::vector<double>& a, const std::vector<double>& b) {
  return a.empty() || b.empty() ? 1 : *std::min_element(a.begin(), a.end()) / *std::min_element(b.begin(), b.end());
}

}  // namespace bench
