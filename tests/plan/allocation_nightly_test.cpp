// labels: alone nightly
#include "steady_state.hpp"

#include <malloc.h>

#include <vector>

using namespace plan_test;

namespace allocation_nightly_test {

template <class T> struct steady_state_nightly : testing::Test {};
TYPED_TEST_SUITE(steady_state_nightly, every_target, target_name);

TYPED_TEST(steady_state_nightly, of_a_night_allocates_nothing_and_stays_in_its_memory) {
#if !COUNTS_ALLOCATIONS
  GTEST_SKIP() << "a sanitizer has replaced operator new";
#endif
  expect_steady_state<TypeParam>(steps_of_a_night);
}

// A leak of less than two pages per step is not seen in 8 steps, but in those of a nightly run.
TEST(memory_of_the_process, grows_by_what_a_thousand_steps_keep) {
  ::malloc_trim(0);  // otherwise memory that earlier tests freed would be reused
  const auto before = anonymous_kib();
  std::vector<std::vector<char>> kept;
  for (int i = 0; i < 1000; ++i) kept.emplace_back(8191, char(i));
  EXPECT_GT(anonymous_kib() - before, 64);
}

}  // namespace allocation_nightly_test
