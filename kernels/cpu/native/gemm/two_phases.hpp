#pragma once
/// Runs tasks that depend on other tasks in one wake-up of the thread pool.
#include <sched.h>

#include <atomic>

#include <isotope/kernels/cpu/native/gemm/blocking.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native {

/// Runs first(i, 0) for i < firsts on all threads, then second(j, 0) for j < seconds, which sees everything that the first tasks wrote. If there are
/// at most `copies` threads, each thread w runs first(i, w) for all i for itself, then its second(j, w). Tasks start in order, so a task only waits
/// for tasks that already run.
///
/// @param nsec  time of all tasks on one thread
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
      else sched_yield();  // lets a thread that still packs have this cpu
    }
    second(t - firsts, 0);
  });
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native
