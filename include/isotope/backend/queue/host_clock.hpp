#pragma once
/// Clocks of the host, for what runs on it beside other programs.
#include <sys/resource.h>
#include <time.h>

#include <algorithm>

namespace isotope {

/// Seconds of a clock of the host that nobody sets. Without <chrono>, which programs for the processor would parse for nothing else.
inline double monotonic_seconds() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// Seconds of processor time of the calling thread: other programs do not make them more.
inline double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}
/// How often the system took the processor away from a thread of this process.
inline long taken_away() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return used.ru_nivcsw;
}
/// The seconds that `run` takes, without other programs as far as can be seen: on one thread its processor time; on several, if the system took the processor away from one of them meanwhile,
/// the least of up to four runs.
template <class Run> double seconds_alone(int threads, const Run& run) {
  if (threads == 1) {
    const double start = thread_seconds();
    run();
    return thread_seconds() - start;
  }
  double least = 0;
  for (int k = 0; k < 4; ++k) {
    const long before = taken_away();
    const double start = monotonic_seconds();
    run();
    const double took = monotonic_seconds() - start;
    least = k == 0 ? took : std::min(least, took);
    if (taken_away() == before) break;
  }
  return least;
}

}  // namespace isotope
