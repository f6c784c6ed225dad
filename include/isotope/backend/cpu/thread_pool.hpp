#pragma once
/// The threads of the cpu backend. They are persistent, pinned to cpus if there are enough, and spin briefly between jobs before they sleep.
///
/// Results never depend on the number of threads. The pool runs every task exactly once. Kernels divide a job into tasks by its shape alone, never by
/// size(), and a task's result does not depend on its worker: kernels may use `worker` only to choose scratch memory.
/// Make one pool per process, since the threads of two pools would spin against each other. The pool sees affinity masks but not cpu quotas: under a quota,
/// give the number of threads. After fork() a child has no workers and must make its own pool. Request AMX permission before the pool starts.
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include <isotope/backend/cpu/float_environment.hpp>
#include <isotope/backend/cpu/processor_rates.hpp>
#include <isotope/backend/queue/thread_owner.hpp>
#include <isotope/core/compiler.hpp>

namespace isotope::cpu {

struct thread_pool_options {
  int threads = 0;                          // including the caller; 0: as many as the affinity mask has cpus
  bool pin = true;                          // binds each worker to a cpu of its own, if the mask has at least `threads` cpus
  int spin_usec = 40;                       // how long a thread spins before it sleeps; treated as 0 if there are more threads than cpus
  subnormals denormals = subnormals::keep;  // the mode of every thread while it runs tasks; the caller's own mode is restored
};

class thread_pool {
 public:
  static constexpr int max_threads = 1024;

  /// Starts threads - 1 workers. If the system refuses to create a thread, the pool works with those that it has: see size().
  explicit thread_pool(int threads = 0) : thread_pool(thread_pool_options{.threads = threads}) {}
  explicit thread_pool(const thread_pool_options& options);
  ~thread_pool();
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;

  /// Threads that run tasks, the caller among them: workers are numbered 0 (the caller) to size() - 1.
  int size() const { return size_; }
  /// The thread that queues on this pool belong to.
  const thread_owner& owner() const { return owner_; }
  /// How tasks treat subnormals.
  subnormals denormals() const { return denormals_; }
  /// Whether each worker is bound to a cpu of its own.
  bool pinned() const { return pinned_; }

  /// Runs fn(task, worker) once for every task in [0, tasks) and returns when all are done. Worker w gets one contiguous range, the same for
  /// equal (tasks, size(), grain), so that the data of its tasks stays in its cache. Allocates nothing.
  ///
  /// @param fn     void(std::int64_t task, int worker); must not throw (an exception ends the program)
  /// @param grain  the number of tasks worth waking a thread for (about 20 usec of work): at most tasks / grain threads take part
  ///
  /// A call from inside a task runs all its tasks on that worker; calls from several threads take turns.
  template <class F> void parallel(std::int64_t tasks, const F& fn, std::int64_t grain = 1) {
    launch(tasks, grain, &fn, [](const job& j, int part, int worker) noexcept {
      const F& f = *static_cast<const F*>(j.context);
      const std::int64_t end = first_task(j, part + 1);
      for (std::int64_t t = first_task(j, part); t < end; ++t) f(t, worker);
    });
  }

  /// Like `parallel`, but a worker that has finished its range takes tasks from the ranges of others, `grain` at a time. For tasks of unequal cost.
  template <class F> void parallel_stealing(std::int64_t tasks, const F& fn, std::int64_t grain = 1) {
    launch(tasks, grain, &fn, [](const job& j, int part, int worker) noexcept {
      const F& f = *static_cast<const F*>(j.context);
      for (int i = 0; i < j.parts; ++i) {
        const int of = part + i < j.parts ? part + i : part + i - j.parts;
        const std::int64_t start = first_task(j, of), end = first_task(j, of + 1);
        for (;;) {
          const std::int64_t begin = start + j.ranges[of].taken.fetch_add(j.grain, std::memory_order_relaxed);
          if (begin >= end) break;
          const std::int64_t until = begin + j.grain < end ? begin + j.grain : end;
          for (std::int64_t t = begin; t < until; ++t) f(t, worker);
        }
      }
    });
  }

  /// Like `parallel`, but each idle worker takes the next `grain` tasks in order. For tasks that wait for earlier ones, or whose first ones are the longest.
  template <class F> void parallel_dynamic(std::int64_t tasks, const F& fn, std::int64_t grain = 1) {
    launch(tasks, grain, &fn, [](const job& j, int, int worker) noexcept {
      const F& f = *static_cast<const F*>(j.context);
      for (;;) {
        const std::int64_t begin = j.next->fetch_add(j.grain, std::memory_order_relaxed);
        if (begin >= j.tasks) return;
        const std::int64_t end = begin + j.grain < j.tasks ? begin + j.grain : j.tasks;
        for (std::int64_t t = begin; t < end; ++t) f(t, worker);
      }
    });
  }

  /// The number of cpus this process may run on, by its affinity mask; at least 1.
  static int available_cpus();

  /// What the threads do in a second. It is set before kernels run.
  processor_rates rates;

 private:
  struct job;
  using runner = void (*)(const job&, int part, int worker) noexcept;
  struct alignas(64) task_range {
    std::atomic<std::int64_t> taken{0};
  };
  struct job {
    const void* context = nullptr;
    runner run = nullptr;
    std::int64_t tasks = 0, grain = 1;
    int parts = 1;
    std::atomic<std::int64_t>* next = nullptr;
    task_range* ranges = nullptr;  // by part
  };
  struct alignas(64) worker_state {
    std::atomic<std::uint32_t> jobs{0};  // how many jobs this worker was given; it sleeps on this word
    thread_pool* pool = nullptr;
    int index = 0, cpu = -1;
    pthread_t thread{};
  };
  struct running {
    const thread_pool* pool = nullptr;
    int worker = 0;
  };

  static std::int64_t first_task(const job& j, int part) {
    const std::int64_t each = j.tasks / j.parts, rest = j.tasks % j.parts;
    return each * part + (part < rest ? part : rest);
  }
  worker_state& worker(int i) { return workers_.get()[i]; }
  static running& current() {
    static thread_local running r;
    return r;
  }
  template <class T> T await_change(std::atomic<T>& word, T old) const;
  void launch(std::int64_t tasks, std::int64_t grain, const void* context, runner run);
  void work(worker_state& self);

  thread_owner owner_;
  int size_ = 1;
  bool pinned_ = false;
  int spin_usec_ = 0;
  subnormals denormals_ = subnormals::keep;
  std::unique_ptr<worker_state[]> workers_;
  std::unique_ptr<task_range[]> ranges_;  // one for each thread
  alignas(64) job job_;
  std::atomic<bool> stop_{false};
  alignas(64) std::atomic<std::int64_t> next_{0};
  alignas(64) std::atomic<std::uint32_t> pending_{0};
  alignas(64) std::atomic<std::uint32_t> busy_{0};
};

inline int thread_pool::available_cpus() {
#if defined(__linux__)
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0 && CPU_COUNT(&mask) > 0) return CPU_COUNT(&mask);
#endif
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? int(online) : 1;
}

inline thread_pool::thread_pool(const thread_pool_options& options) : denormals_(options.denormals) {
  const int cpus = available_cpus();
  int threads = options.threads > 0 ? options.threads : cpus;
  if (threads > max_threads) threads = max_threads;
  // Threads spin only if each has a cpu to itself; otherwise a spinning thread would take the cpu from one that works.
  spin_usec_ = threads <= cpus ? options.spin_usec : 0;
  ranges_.reset(new task_range[std::size_t(threads)]);
  if (threads == 1) return;
  workers_.reset(new worker_state[std::size_t(threads - 1)]);
  for (int i = 0; i < threads - 1; ++i) {
    worker(i).pool = this;
    worker(i).index = i + 1;
  }
#if defined(__linux__)
  cpu_set_t mask;
  if (options.pin && threads <= cpus && sched_getaffinity(0, sizeof mask, &mask) == 0 && CPU_COUNT(&mask) >= threads) {
    const int here = sched_getcpu();  // no worker is pinned here: the caller, which is never pinned, runs on it
    int cpu = 0;
    for (int i = 0; i < threads - 1; ++i, ++cpu) {
      while (cpu < CPU_SETSIZE && (!CPU_ISSET(cpu, &mask) || cpu == here)) ++cpu;
      worker(i).cpu = cpu < CPU_SETSIZE ? cpu : -1;
    }
    pinned_ = true;
  }
#endif
  for (int i = 0; i < threads - 1; ++i) {
    auto entry = [](void* state) -> void* {
      auto* self = static_cast<worker_state*>(state);
      self->pool->work(*self);
      return nullptr;
    };
    if (pthread_create(&worker(i).thread, nullptr, entry, &worker(i)) != 0) break;
    size_ = i + 2;
  }
}

inline thread_pool::~thread_pool() {
  stop_.store(true, std::memory_order_relaxed);
  for (int i = 0; i < size_ - 1; ++i) {
    worker(i).jobs.fetch_add(1, std::memory_order_release);
    worker(i).jobs.notify_one();
  }
  for (int i = 0; i < size_ - 1; ++i) pthread_join(worker(i).thread, nullptr);
}

/// Returns the word's value once it differs from `old`: spins first, then sleeps until it is notified.
template <class T> T thread_pool::await_change(std::atomic<T>& word, T old) const {
  T value = word.load(std::memory_order_acquire);
  if (value != old) return value;
  if (spin_usec_ > 0) {
    auto now = [] {
      timespec t;
      clock_gettime(CLOCK_MONOTONIC, &t);
      return std::int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
    };
    const std::int64_t until = now() + std::int64_t(spin_usec_) * 1000;
    do {
      for (int i = 0; i < 16; ++i) {  // checks 16 times per clock read, which costs about as much as one pause
        ISOTOPE_PAUSE();
        value = word.load(std::memory_order_acquire);
        if (value != old) return value;
      }
    } while (now() < until);
  }
  while ((value = word.load(std::memory_order_acquire)) == old) word.wait(old, std::memory_order_acquire);
  return value;
}

inline void thread_pool::launch(std::int64_t tasks, std::int64_t grain, const void* context, runner run) {
  if (tasks <= 0) return;
  running& me = current();
  const bool nested = me.pool == this;
  if (grain < 1) grain = 1;
  const std::int64_t useful = tasks / grain;
  const int parts = nested || useful <= 1 ? 1 : useful < size_ ? int(useful) : size_;
  const float_environment mode(denormals_);
  if (nested) {
    std::atomic<std::int64_t> next{0};
    task_range all;
    run(job{context, run, tasks, tasks, 1, &next, &all}, 0, me.worker);
    return;
  }
  while (busy_.exchange(1, std::memory_order_acquire) != 0) busy_.wait(1, std::memory_order_relaxed);
  const running before = me;
  me = {this, 0};
  next_.store(0, std::memory_order_relaxed);
  for (int i = 0; i < parts; ++i) ranges_.get()[i].taken.store(0, std::memory_order_relaxed);
  job_ = {context, run, tasks, grain, parts, &next_, ranges_.get()};
  pending_.store(std::uint32_t(parts - 1), std::memory_order_relaxed);
  for (int i = 0; i < parts - 1; ++i) {
    worker(i).jobs.fetch_add(1, std::memory_order_release);
    worker(i).jobs.notify_one();
  }
  run(job_, 0, 0);
  for (std::uint32_t left = pending_.load(std::memory_order_acquire); left != 0;) left = await_change(pending_, left);
  me = before;
  busy_.store(0, std::memory_order_release);
  busy_.notify_one();
}

inline void thread_pool::work(worker_state& self) {
#if defined(__linux__)
  if (self.cpu >= 0) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(self.cpu, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);  // if refused, the thread may move between cpus: slower, but correct
  }
#endif
  const float_environment mode(denormals_);
  current() = {this, self.index};
  for (std::uint32_t seen = 0;;) {
    seen = await_change(self.jobs, seen);
    if (stop_.load(std::memory_order_relaxed)) return;
    job_.run(job_, self.index, self.index);
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
  }
}

}  // namespace isotope::cpu
