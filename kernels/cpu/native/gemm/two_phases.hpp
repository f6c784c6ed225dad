#pragma once
/// Tasks that wait for other tasks, in one wake-up of the pool.
#include <sched.h>

#include <atomic>

#include <isotope/kernels/cpu/native/gemm/blocking.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace native {

/// first(i, 0) for i < firsts by all threads, then second(j, 0) for j < seconds, which sees what all first tasks wrote; or, where there are no
/// more threads than `copies`, first(i, w) for all i by each thread w for itself, then second(j, w). Tasks are handed out in order, so whoever
/// waits waits for tasks that already run.
///
/// @param nsec  all of them on one thread
template <class First, class Second>
void in_two_phases(const launch& l, int copies, std::int64_t firsts, const First& first, std::int64_t seconds, const Second& second,
                   double nsec) {
  if (l.pool != nullptr && l.pool->size() > 1 && l.pool->size() <= copies) {
    struct alignas(64) state {
      bool ready = false;
    };
    state of_worker[blocking::copies];
    portable::for_uneven_tasks(l, seconds, nsec, [&](std::int64_t t, int worker) {
      if (!of_worker[worker].ready)
        for (std::int64_t i = 0; i < firsts; ++i) first(i, worker);
      of_worker[worker].ready = true;
      second(t, worker);
    });
    return;
  }
  std::atomic<std::int64_t> done{0};
  portable::for_tasks_in_order(l, firsts + seconds, nsec, [&](std::int64_t t, int) {
    if (t < firsts) {
      first(t, 0);
      done.fetch_add(1, std::memory_order_release);
      return;
    }
    for (int spins = 0; done.load(std::memory_order_acquire) < firsts; ++spins) {
      if (spins < 1000) ISOTOPE_PAUSE();
      else sched_yield();  // another thread has the cpu of one that still packs
    }
    second(t - firsts, 0);
  });
}

}  // namespace native
}  // namespace arch
}  // namespace isotope::cpu
