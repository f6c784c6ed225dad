// labels: alone threads
#include "../allocation_counter.hpp"

#include <isotope/backend/cpu/thread_pool.hpp>

#include <gtest/gtest.h>

namespace thread_pool_allocation_test {

TEST(thread_pool, allocates_nothing_per_call) {
#if !COUNTS_ALLOCATIONS
  GTEST_SKIP() << "a sanitizer has replaced operator new";
#else
  isotope::cpu::thread_pool pool(3);
  std::atomic<std::int64_t> sum{0};
  auto call = [&] {
    pool.parallel(100, [&](std::int64_t t, int) { sum.fetch_add(t, std::memory_order_relaxed); });
    pool.parallel_dynamic(100, [&](std::int64_t t, int) { sum.fetch_add(t, std::memory_order_relaxed); });
    pool.parallel_stealing(100, [&](std::int64_t t, int) { sum.fetch_add(t, std::memory_order_relaxed); });
  };
  call();
  const auto before = allocations.load();
  for (int i = 0; i < 100; ++i) call();
  EXPECT_EQ(allocations.load(), before);
  ::operator delete(::operator new(1));
  EXPECT_GT(allocations.load(), before) << "the counter has to count";
#endif
}

}  // namespace thread_pool_allocation_test
