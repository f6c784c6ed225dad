#pragma once
/// Tasks that wait for other tasks, in one wake-up of the pool.
#include <sched.h>

#include <atomic>

#include <isotope/kernels/cpu/parallel.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace native {

/// first(i) for i < firsts, then second(j) for j < seconds, which sees what all first tasks wrote; `nsec`: all of them on one thread. Tasks are
/// handed out in order, so whoever waits waits for tasks that already run.
template <class First, class Second>
void in_two_phases(const launch& l, std::int64_t firsts, const First& first, std::int64_t seconds, const Second& second, double nsec) {
  std::atomic<std::int64_t> done{0};
  portable::for_uneven_tasks(l, firsts + seconds, nsec, [&](std::int64_t t, int) {
    if (t < firsts) {
      first(t);
      done.fetch_add(1, std::memory_order_release);
      return;
    }
    for (int spins = 0; done.load(std::memory_order_acquire) < firsts; ++spins) {
      if (spins < 1000) ISOTOPE_PAUSE();
      else sched_yield();  // another thread has the cpu of one that still packs
    }
    second(t - firsts);
  });
}

}  // namespace native
}  // namespace arch
}  // namespace isotope::cpu
