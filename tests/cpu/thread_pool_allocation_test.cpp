// labels: threads
#include <isotope/backend/cpu/thread_pool.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

// Sanitizers bring their own operator new.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define COUNTS_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define COUNTS_ALLOCATIONS 0
#endif
#endif
#ifndef COUNTS_ALLOCATIONS
#define COUNTS_ALLOCATIONS 1
#endif

#if COUNTS_ALLOCATIONS
namespace {
std::atomic<std::int64_t> allocations{0};
}
// Not inlined: g++ would take free() for a mismatch with the operator new of the library.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(bytes != 0 ? bytes : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

#endif

namespace {

TEST(thread_pool, allocates_nothing_per_call) {
#if !COUNTS_ALLOCATIONS
  GTEST_SKIP() << "a sanitizer has replaced operator new";
#else
  isotope::cpu::thread_pool pool(3);
  std::atomic<std::int64_t> sum{0};
  auto call = [&] {
    pool.parallel(100, [&](std::int64_t t, int) { sum.fetch_add(t, std::memory_order_relaxed); });
    pool.parallel_dynamic(100, [&](std::int64_t t, int) { sum.fetch_add(t, std::memory_order_relaxed); });
  };
  call();
  const auto before = allocations.load();
  for (int i = 0; i < 100; ++i) call();
  EXPECT_EQ(allocations.load(), before);
  ::operator delete(::operator new(1));
  EXPECT_GT(allocations.load(), before) << "the counter has to count";
#endif
}

}  // namespace
