#pragma once
/// When a thread that waits for a device looks again: seldom while work cannot have ended yet, often when it is about to end.
#include <algorithm>
#include <array>
#include <cstddef>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

namespace isotope::cuda {

/// How long pieces of work took when they last ran. A piece of work is known by an address, and the latest few are remembered.
class usual_times {
 public:
  /// The seconds to sleep before the next look at work that has run for `elapsed` seconds and has not ended. A step of 10 ms costs about ten looks, and its end
  /// is noticed within 40 us; work that was never seen is looked at after a share of the time that has passed.
  double pause(const void* work, double elapsed) const { return pause_of(of(work), elapsed); }
  /// The same for work that usually takes `usual` seconds; 0: unknown.
  static double pause_of(double usual, double elapsed) {
    if (usual == 0) return std::clamp(elapsed / 8, shortest, longest);
    const double soon = usual * (1 - margin), often = std::max(usual / 256, shortest);
    if (elapsed < soon) return std::clamp(soon - elapsed, shortest, 20 * longest);
    return std::clamp((elapsed - usual * (1 + margin)) / 8, often, std::max(often, longest));
  }
  /// Whether a thread looks again at once, since a sleep and the way out of it take too large a share of the time of such short work. Work that takes much longer than
  /// usual is not waited for so.
  static bool spins(double usual, double elapsed) {
    constexpr double short_work = 200e-6;
    return usual > 0 && usual <= short_work && elapsed < 2 * short_work;
  }
  /// As `pause`, for work behind which more is queued, so that its end need not be noticed at once. A wait costs one look or two.
  static double long_pause(double usual, double elapsed) {
    if (usual == 0) return std::clamp(elapsed / 8, shortest, longest);
    return std::clamp(usual * (1 + margin) - elapsed, std::max(usual / 16, shortest), 1000 * longest);
  }
  /// The seconds that a piece of work took; 0: it was not seen.
  double of(const void* work) const {
    if (work == nullptr) return 0;
    for (const entry& e : entries_)
      if (e.work == work) return e.seconds;
    return 0;
  }
  /// Remembers that work ended between `before` and `after` seconds. `before` is 0 if nobody looked before it ended.
  void add(const void* work, double before, double after) {
    put(work, std::max(before, after * 7 / 8));  // less than the truth, so that the end of the next run is not slept through
  }
  /// As `add`, after long pauses, which sleep through the end: if nobody looked shortly before it, the work is taken to be a little shorter than was believed.
  void add_after_long_pause(const void* work, double before, double after) {
    const double known = of(work);
    put(work, known == 0 || before > known / 2 ? std::max(before, after * 7 / 8) : std::min(known * (1 - margin / 4), after));
  }

 private:
  static constexpr double shortest = 2e-6, longest = 1e-3, margin = 1.0 / 32;
  struct entry {
    const void* work = nullptr;
    double seconds = 0;
  };
  std::array<entry, 8> entries_{};
  std::size_t next_ = 0;

  void put(const void* work, double seconds) {
    for (entry& e : entries_)
      if (e.work == work) {
        e.seconds = seconds;
        return;
      }
    entries_[next_] = {work, seconds};
    next_ = (next_ + 1) % entries_.size();
  }
};

/// Makes sleeps of the calling thread end on time as long as it lives: the system otherwise adds up to 50 us to each.
class short_sleeps {
 public:
  short_sleeps() {
#if defined(__linux__)
    before_ = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
    if (before_ > 0) prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
#endif
  }
  short_sleeps(const short_sleeps&) = delete;
  short_sleeps& operator=(const short_sleeps&) = delete;
  ~short_sleeps() {
#if defined(__linux__)
    if (before_ > 0) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(before_), 0, 0, 0);
#endif
  }

 private:
  int before_ = 0;
};

}  // namespace isotope::cuda
