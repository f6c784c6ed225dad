// labels: alone
#include "../allocation_counter.hpp"
#include "outcome.hpp"

#include <isotope/model/all.hpp>

#include <sys/resource.h>

#include <array>

using namespace plan_test;

namespace allocation_test {

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
  auto device = opened_bare<T>(2);
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
  if constexpr (std::is_same_v<typename T::backend, isotope::backend::cpu>) {
    EXPECT_LE(peak_resident_kib() - resident, 64);  // a page table, a stack page
  }
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

}  // namespace allocation_test
