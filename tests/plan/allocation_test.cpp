// labels: alone
#include "steady_state.hpp"

using namespace plan_test;

namespace allocation_test {

template <class T> struct steady_state : testing::Test {};
TYPED_TEST_SUITE(steady_state, every_target, target_name);

TYPED_TEST(steady_state, allocates_nothing_per_step_and_stays_in_its_memory) {
#if !COUNTS_ALLOCATIONS
  GTEST_SKIP() << "a sanitizer has replaced operator new";
#endif
  expect_steady_state<TypeParam>(8);
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
