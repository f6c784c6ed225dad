// labels: threads
#include <isotope/backend/cpu/thread_pool.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace thread_pool_test {

using isotope::cpu::subnormals;
using isotope::cpu::thread_pool;
const int thread_counts[] = {1, 2, 3, 8};

TEST(thread_pool, runs_every_task_once_on_a_numbered_worker) {
  for (const int threads : thread_counts) {
    thread_pool pool(threads);
    ASSERT_EQ(pool.size(), threads);
    for (const std::int64_t tasks : {0, 1, 2, 7, 8, 9, 1000}) {
      for (const int way : {0, 1, 2}) {
        for (const std::int64_t grain : {1, 3, 100}) {
          std::vector<std::atomic<int>> runs(static_cast<std::size_t>(tasks));
          std::atomic<int> strangers{0};
          auto task = [&](std::int64_t t, int worker) {
            if (worker < 0 || worker >= pool.size()) ++strangers;
            ++runs[std::size_t(t)];
          };
          if (way == 0) pool.parallel(tasks, task, grain);
          else if (way == 1) pool.parallel_stealing(tasks, task, grain);
          else pool.parallel_dynamic(tasks, task, grain);
          EXPECT_EQ(strangers, 0);
          for (const auto& r : runs) ASSERT_EQ(r, 1) << threads << " threads, " << tasks << " tasks, grain " << grain;
        }
      }
    }
  }
}

TEST(thread_pool, gives_each_worker_one_contiguous_range_of_nearly_equal_length) {
  thread_pool pool(3);
  std::vector<int> owner(11, -1);
  pool.parallel(11, [&](std::int64_t t, int worker) { owner[std::size_t(t)] = worker; });
  EXPECT_EQ(owner, (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2}));
}

TEST(thread_pool, takes_tasks_of_a_worker_that_is_held_up) {
  thread_pool pool(2);
  std::vector<int> owner(10, -1);
  std::atomic<int> done{0};
  int before = 0;
  pool.parallel_stealing(10, [&](std::int64_t t, int worker) {
    owner[std::size_t(t)] = worker;
    if (t == 0) {
      before = done.load();                               // if the other thread starts late, this one may have run its own range first
      while (done.load() < 9) std::this_thread::yield();  // waits for all other tasks, those of its own range included
    }
    ++done;
  });
  EXPECT_EQ(std::count(owner.begin(), owner.end(), -1), 0);
  EXPECT_LE(std::count(owner.begin() + 1, owner.end(), owner[0]), before) << "it ran no task while it was held up";
}

TEST(thread_pool, keeps_small_jobs_on_the_caller) {
  thread_pool pool(8);
  const auto caller = std::this_thread::get_id();
  std::atomic<int> elsewhere{0};
  auto task = [&](std::int64_t, int worker) {
    if (worker != 0 || std::this_thread::get_id() != caller) ++elsewhere;
  };
  pool.parallel(15, task, 8);
  pool.parallel_dynamic(15, task, 8);
  pool.parallel_stealing(15, task, 8);
  EXPECT_EQ(elsewhere, 0);
  std::vector<int> owner(16, -1);
  pool.parallel(16, [&](std::int64_t t, int worker) { owner[std::size_t(t)] = worker; }, 8);
  EXPECT_EQ(owner.back(), 1) << "two grains of work use two threads";
}

TEST(thread_pool, gives_the_same_bits_with_any_number_of_threads) {
  // A sum that is divided by shape: tiles of 1000 terms, which are then added in order.
  auto total = [](int threads, bool dynamic) {
    thread_pool pool(threads);
    std::vector<float> tile(64);
    auto task = [&](std::int64_t t, int) {
      float s = 0;
      for (int i = 0; i < 1000; ++i) s += 1.0f / float(t * 1000 + i + 1);
      tile[std::size_t(t)] = s;
    };
    dynamic ? pool.parallel_dynamic(64, task) : pool.parallel(64, task);
    float s = 0;
    for (const float v : tile) s += v;
    return s;
  };
  const float expected = total(1, false);
  for (const int threads : thread_counts) {
    EXPECT_EQ(total(threads, false), expected);
    EXPECT_EQ(total(threads, true), expected);
  }
}

TEST(thread_pool, orders_what_one_job_writes_before_what_the_next_reads) {
  // Each job reads what another worker wrote in the job before. A missing barrier gives a wrong count, and a race under TSan.
  for (const int threads : thread_counts) {
    thread_pool pool(threads);
    std::vector<std::int64_t> a(64, 0), b(64, 0);
    for (int round = 0; round < 500; ++round) {
      pool.parallel(64, [&](std::int64_t t, int) { b[std::size_t(t)] = a[std::size_t(63 - t)] + 1; });
      pool.parallel_dynamic(64, [&](std::int64_t t, int) { a[std::size_t(t)] = b[std::size_t(63 - t)] + 1; });
    }
    for (const auto v : a) ASSERT_EQ(v, 1000);
  }
}

TEST(thread_pool, wakes_workers_that_went_to_sleep) {
  // Without spinning, a worker sleeps between jobs.
  thread_pool pool({.threads = 3, .spin_usec = 0});
  std::atomic<int> runs{0};
  for (int i = 0; i < 2000; ++i) pool.parallel(3, [&](std::int64_t, int) { runs.fetch_add(1, std::memory_order_relaxed); });
  EXPECT_EQ(runs, 6000);
}

TEST(thread_pool, runs_a_nested_call_on_the_worker_that_makes_it) {
  for (const int threads : thread_counts) {
    thread_pool pool(threads);
    std::atomic<int> runs{0}, moved{0};
    pool.parallel(6, [&](std::int64_t, int outer) {
      auto task = [&](std::int64_t, int inner) {
        ++runs;
        if (inner != outer) ++moved;
      };
      pool.parallel(5, task);
      pool.parallel_dynamic(5, task);
    });
    EXPECT_EQ(runs, 60);
    EXPECT_EQ(moved, 0);
  }
}

TEST(thread_pool, lets_several_threads_take_turns) {
  thread_pool pool(3);
  std::atomic<int> inside{0}, runs{0}, overlaps{0};
  auto client = [&] {
    for (int i = 0; i < 200; ++i) {
      std::atomic<bool> mine{true};
      pool.parallel(4, [&](std::int64_t t, int worker) {
        if (worker == 0 && t == 0 && inside.fetch_add(1) != 0) ++overlaps;
        ++runs;
        if (worker == 0 && t == 0) inside.fetch_sub(1);
        if (!mine) ++overlaps;
      });
      mine = false;
    }
  };
  std::thread other(client), third(client);
  client();
  other.join();
  third.join();
  EXPECT_EQ(runs, 3 * 200 * 4);
  EXPECT_EQ(overlaps, 0);
}

TEST(thread_pool, starts_and_stops_without_a_job) {
  for (int i = 0; i < 50; ++i) thread_pool pool(4);
}

TEST(thread_pool, takes_its_default_size_from_the_affinity_mask) {
  EXPECT_EQ(thread_pool().size(), thread_pool::available_cpus());
  EXPECT_GE(thread_pool::available_cpus(), 1);
  EXPECT_EQ(thread_pool(-5).size(), thread_pool::available_cpus());
  EXPECT_FALSE(thread_pool(thread_pool::available_cpus() + 1).pinned()) << "there is no cpu for each";
}

float half_of_the_smallest_normal() {
  volatile float x = 0x1p-126f;
  return x * 0.5f;
}

TEST(thread_pool, runs_tasks_in_its_own_subnormal_mode_and_restores_the_callers) {
  for (const int threads : thread_counts) {
    std::vector<float> kept(16, -1), flushed(16, -1);
    thread_pool keep(threads), flush({.threads = threads, .denormals = subnormals::flush});
    {
      const isotope::cpu::float_environment caller(subnormals::flush);
      keep.parallel(16, [&](std::int64_t t, int) { kept[std::size_t(t)] = half_of_the_smallest_normal(); });
#if defined(__x86_64__) || defined(__aarch64__)
      EXPECT_EQ(half_of_the_smallest_normal(), 0.0f) << "the caller's mode is restored";
#endif
    }
    flush.parallel(16, [&](std::int64_t t, int) { flushed[std::size_t(t)] = half_of_the_smallest_normal(); });
    EXPECT_EQ(half_of_the_smallest_normal(), 0x1p-127f);
    for (const float v : kept) EXPECT_EQ(v, 0x1p-127f);
#if defined(__x86_64__) || defined(__aarch64__)
    for (const float v : flushed) EXPECT_EQ(v, 0.0f);
#endif
  }
}

}  // namespace thread_pool_test
