/// What a job of the thread pool costs beside its tasks: all threads begin, do next to nothing, and are waited for.
///
/// `after` keeps the caller busy for some microseconds before each job, as small steps do: workers spin that long, then they sleep.
#include <isotope/backend/cpu/thread_pool.hpp>

#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>

namespace {
namespace iso = isotope;

iso::cpu::thread_pool& pool() {
  static iso::cpu::thread_pool p;
  return p;
}
void busy(std::int64_t usec) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(usec);
  while (std::chrono::steady_clock::now() < end) ISOTOPE_PAUSE();
}
template <class Run> void jobs(benchmark::State& state, const Run& run) {
  const std::int64_t usec = state.range(0);
  for (auto _ : state) {
    busy(usec);
    const auto start = std::chrono::steady_clock::now();
    run();
    state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  state.counters["threads"] = pool().size();
}

void fixed(benchmark::State& state) {
  jobs(state, [] { pool().parallel(pool().size(), [](std::int64_t t, int) { benchmark::DoNotOptimize(t); }); });
}
void stealing(benchmark::State& state) {
  jobs(state, [] { pool().parallel_stealing(pool().size(), [](std::int64_t t, int) { benchmark::DoNotOptimize(t); }); });
}
BENCHMARK(fixed)->Name("barrier/parallel/after_us")->Arg(0)->Arg(5)->Arg(20)->Arg(100)->UseManualTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(stealing)
    ->Name("barrier/parallel_stealing/after_us")
    ->Arg(0)
    ->Arg(5)
    ->Arg(20)
    ->Arg(100)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);
}  // namespace

BENCHMARK_MAIN();
