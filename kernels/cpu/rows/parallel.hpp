#pragma once
/// How kernels share work: tasks are divided by shape alone, and each of at most `max_workers` workers has its own slice of scratch memory.
#include <cstdint>

#include <isotope/backend/cpu/launch.hpp>
#include <isotope/backend/cpu/thread_pool.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

inline constexpr int max_workers = 64;      // further threads stay idle: this bounds scratch memory
inline constexpr double worth_nsec = 10e3;  // a task this long pays for waking a thread: about five barriers

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
constexpr std::int64_t larger_of(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

/// Returns the least number of tasks per thread that pays, where all tasks together take `nsec` on one thread.
inline std::int64_t grain_of(const thread_pool& pool, std::int64_t tasks, double nsec) {
  const double each = nsec / double(tasks);
  const std::int64_t paying = each >= worth_nsec ? 1 : each <= 0 ? tasks : std::int64_t(worth_nsec / each) + 1;
  return larger_of(paying, pool.size() > max_workers ? divide_up(tasks, max_workers) : 1);
}

/// Calls fn(task, slice) for each task in [0, tasks), on all threads where that pays; run(tasks, task, grain) distributes them.
template <class F, class Run> void hand_out(const launch& l, std::int64_t tasks, double nsec, const F& fn, const Run& run) {
  if (tasks <= 0) return;
  if (l.pool == nullptr || l.pool->size() == 1 || nsec < 2 * worth_nsec) {
    for (std::int64_t t = 0; t < tasks; ++t) fn(t, 0);
    return;
  }
  const int slices = int(smaller(tasks, max_workers));
  run(tasks, [&fn, slices](std::int64_t t, int worker) { fn(t, worker % slices); }, grain_of(*l.pool, tasks, nsec));
}
/// Calls fn(task, slice) for each task in [0, tasks). A slice, below min(tasks, max_workers), belongs to the calling worker alone.
template <class F> void for_tasks(const launch& l, std::int64_t tasks, double nsec, const F& fn) {
  hand_out(l, tasks, nsec, fn, [&](auto... x) { l.pool->parallel(x...); });
}
/// As for_tasks, for tasks of unequal cost. Each worker starts with tasks near those it ran in earlier steps, then steals from the others.
template <class F> void for_uneven_tasks(const launch& l, std::int64_t tasks, double nsec, const F& fn) {
  hand_out(l, tasks, nsec, fn, [&](auto... x) { l.pool->parallel_stealing(x...); });
}
/// As for_tasks, for tasks that wait for earlier tasks: they start in order.
template <class F> void for_tasks_in_order(const launch& l, std::int64_t tasks, double nsec, const F& fn) {
  hand_out(l, tasks, nsec, fn, [&](auto... x) { l.pool->parallel_dynamic(x...); });
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable
