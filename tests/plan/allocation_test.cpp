#include "outcome.hpp"
#include "targets.hpp"

#include <isotope/model/all.hpp>

#include <sys/resource.h>

#include <array>
#include <atomic>
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

namespace {
std::atomic<std::int64_t> allocations{0};
}
#if COUNTS_ALLOCATIONS
// Not inlined: g++ would take free() for a mismatch with the operator new of the library.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(bytes != 0 ? bytes : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const auto a = std::size_t(alignment);
  if (void* p = std::aligned_alloc(a, (bytes + a - 1) / a * a)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
#endif

using namespace plan_test;

namespace {

std::int64_t peak_resident_kib() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return use.ru_maxrss;
}

template <class T> struct steady_state : testing::Test {};
TYPED_TEST_SUITE(steady_state, every_target, target_name);

TYPED_TEST(steady_state, allocates_nothing_per_step_and_stays_in_its_memory) {
#if !COUNTS_ALLOCATIONS
  GTEST_SKIP() << "a sanitizer has replaced operator new";
#endif
  using T = TypeParam;
  constexpr isotope::model::gpt size{2, 2, 32, 65, 16, 0.1};
  auto device = isotope::cpu::device<T>::open({.threads = 2});
  ASSERT_TRUE(device.ok());
  auto evaluation = isotope::plan_inference<T>(isotope::model::gpt_loss_of{size, 2, 16});
  ASSERT_TRUE(evaluation.ok());
  auto s = device->load(planned<T>(isotope::model::gpt_loss_of{size, 2, 16}, {.accumulate = true}), std::move(*evaluation));
  ASSERT_TRUE(s.ok());
  s->initialize(3);
  const auto tokens = input_values<std::int32_t>("tokens", 32), targets = input_values<std::int32_t>("targets", 32);
  const std::array<isotope::batch, 2> batches{{{tokens, targets}, {targets, tokens}}};
  auto x = scalars();
  x.clip_norm = 1;
  for (int i = 0; i < 3; ++i) {  // threads start, pages are touched
    s->step(batches, x);
    s->evaluate(batches[0]);
  }
  const auto bytes = s->measured_bytes(), resident = peak_resident_kib();
  const auto before = allocations.load();
  double loss = 0;
  for (int i = 0; i < 8; ++i) loss += s->step(batches, x).loss + s->evaluate(batches[0]);
  EXPECT_EQ(allocations.load() - before, 0);
  EXPECT_EQ(s->measured_bytes(), bytes);
  EXPECT_LE(peak_resident_kib() - resident, 64);  // a page table, a stack page
  EXPECT_TRUE(std::isfinite(loss));
}

TEST(allocation_counter, counts) {
#if !COUNTS_ALLOCATIONS
  GTEST_SKIP() << "a sanitizer has replaced operator new";
#endif
  const auto before = allocations.load();
  ::operator delete(::operator new(1));  // a call: a new-expression may be optimised away
  EXPECT_EQ(allocations.load() - before, 1);
}

}  // namespace
