#pragma once
/// Times of variants that run by turns, and whether their order is known.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "../../core/error.hpp"
#include "host_clock.hpp"

namespace isotope {

/// In each round every variant runs once, so that what comes from outside, such as other programs and a clock that changes, meets all of them. It makes runs longer and not shorter, so of a
/// variant's times a low one counts.
class variant_rounds {
 public:
  /// @param part  which of a variant's times counts, from 0, the least, to 1, the greatest
  variant_rounds(std::size_t variants, double part) : times_(variants), part_(part) {}

  void add(std::size_t variant, double seconds) { times_[variant].push_back(seconds); }
  std::size_t rounds(std::size_t variant) const { return times_[variant].size(); }
  /// The time of a variant that has run.
  double seconds(std::size_t variant) const {
    std::vector<double> sorted = times_[variant];
    const auto at = sorted.begin() + std::ptrdiff_t(part_ * double(sorted.size() - 1));
    std::nth_element(sorted.begin(), at, sorted.end());
    return *at;
  }
  /// Whether more rounds would hardly change which of two is faster, of variants that ran in the same rounds: their times are within `tie` of each other, or one was faster so often that of two of equal
  /// speed, one would be in one of 400 cases (sign test), and its time is the lower one.
  bool settled(std::size_t a, std::size_t b, double tie) const {
    const double x = seconds(a), y = seconds(b);
    if (std::max(x, y) <= tie * std::min(x, y)) return true;
    const std::size_t n = std::min(rounds(a), rounds(b));
    int ahead = 0;  // rounds in which a was faster, less those in which b was
    for (std::size_t k = 0; k < n; ++k) ahead += int(times_[a][k] < times_[b][k]) - int(times_[b][k] < times_[a][k]);
    constexpr double deviations = 3;  // so nine of nine rounds
    return std::abs(double(ahead)) >= deviations * std::sqrt(double(n)) && (ahead > 0) == (x < y);
  }

 private:
  std::vector<std::vector<double>> times_;
  double part_;
};

/// One variant of a choice that is being made.
struct timed_variant {
  std::string name;
  double predicted = 0, seconds = 0;  // seconds: a low one of several times; 0: it was not timed, less: it left
  bool agrees = true;                 // with the variant of the least predicted time
};

/// The fastest of variants; where several take at most `tie` times as long, the one of the least predicted time among them, so that ties are the same in every run. -1: none agrees and was timed.
inline int fastest_of(std::span<const timed_variant> all, double tie = 1.01) {
  double least = 0;
  for (const auto& v : all)
    if (v.agrees && v.seconds > 0 && (least == 0 || v.seconds < least)) least = v.seconds;
  int best = -1;
  for (std::size_t k = 0; k < all.size(); ++k)
    if (all[k].agrees && all[k].seconds > 0 && all[k].seconds <= tie * least &&
        (best < 0 || all[k].predicted < all[std::size_t(best)].predicted))
      best = int(k);
  return best;
}

/// How variants run by turns.
struct turns {
  double part = 0.25;          // as in variant_rounds
  double tie = 1.01;           // times the least time, which ties take at most
  int least = 7;               // rounds, unless one variant is left
  int usual = 7, most = 40;    // rounds, where the order of the fastest is known, and where it is not
  double usual_seconds = 0;    // of all rounds: after these there are no more, where it is known
  double most_seconds = 0.02;  // and where it is not
  double (*much)(int round,
                 double);  // times the least time, which is the second argument: variants that take longer leave after this round
};
/// Runs variants in rounds, each of which begins with another one, until their order is known or that takes too long. Their `seconds` become the times that count; those that leave get -1. Returns the least time.
///
/// @param timer    a VariantTimer
/// @param all      those whose `seconds` are less than 0 do not run
/// @param several  runs of each, which take turns, too: round k runs the one with number k
template <class Timer>
result<double> by_turns(Timer& timer, std::vector<timed_variant>& all, const std::vector<std::vector<typename Timer::run>>& several,
                        const turns& how) {
  const double start = monotonic_seconds();
  variant_rounds times(all.size(), how.part);
  for (int round = 1;; ++round) {
    double least = 0;
    std::size_t fastest = 0;
    for (std::size_t n = 0; n < all.size(); ++n) {
      const std::size_t k = (n + std::size_t(round)) % all.size();
      if (all[k].seconds < 0) continue;
      auto t = timer.seconds(several[k][std::size_t(round) % several[k].size()]);
      if (!t) return t.error();
      times.add(k, *t);
      all[k].seconds = times.seconds(k);
      if (least == 0 || all[k].seconds < least) least = all[k].seconds, fastest = k;
    }
    int left = 0;
    bool settled = true;
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (all[k].seconds > how.much(round, least) * least) all[k].seconds = -1;
      if (all[k].seconds <= 0) continue;
      ++left;
      settled = settled && (k == fastest || times.settled(fastest, k, how.tie));
    }
    const double spent = monotonic_seconds() - start;
    const bool enough = settled ? round >= how.usual || spent > how.usual_seconds : round >= how.most || spent > how.most_seconds;
    if (left <= 1 || (round >= how.least && enough)) return least;
  }
}

}  // namespace isotope
