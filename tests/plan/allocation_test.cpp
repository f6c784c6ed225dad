// labels: alone
#include <isotope/train/batch.hpp>

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

/// The memory that the process uses, on devices with their own memory as the driver reports it; -1: the driver does not report it.
template <isotope::Target T> std::int64_t taken_bytes(const isotope::device<T>& device) {
  if constexpr (std::is_same_v<typename T::backend, isotope::backend::cpu>) {
    return 1024 * anonymous_kib();
  } else {
    const auto r = memory_in_use(*device.shared());
    return device.info().kind == isotope::device_kind::cpu || !r ? -1 : *r;
  }
}

TYPED_TEST(steady_state, takes_from_the_system_what_its_plan_says) {
#if !COUNTS_ALLOCATIONS
  GTEST_SKIP() << "sanitizers use memory themselves";
#endif
  // The reference kernels are slow, so they run with 16 tokens, and a larger vocabulary so that their plan is above 50 MB.
  constexpr bool slow = std::is_same_v<typename TypeParam::kernel_set, isotope::kernels::reference>;
  constexpr isotope::model::gpt size{.layers = 2, .heads = 4, .width = 256, .vocab = slow ? 8192 : 4096, .context = slow ? 16 : 128};
  constexpr int sequences = slow ? 1 : 4;
  auto device = opened_bare<TypeParam>(2);
  ASSERT_TRUE(device.ok());
  const std::int64_t before = taken_bytes<TypeParam>(*device);
  if (before < 0) GTEST_SKIP() << "this driver does not report its memory use";
  auto s = device->load(planned<TypeParam>(isotope::model::gpt_loss_of{size, sequences, size.context}), {});
  ASSERT_TRUE(s.ok());
  s->initialize(3);
  const auto tokens = input_values<std::int32_t>("tokens", sequences * size.context);
  const isotope::batch batch{tokens, tokens};
  for (int i = 0; i < 2; ++i) s->step(batch, scalars());
  const bool on_host = std::is_same_v<typename TypeParam::backend, isotope::backend::cpu>;
  EXPECT_EQ(on_host ? s->taken_bytes() : 0, 0);
  const double planned = double(s->planned_bytes()), taken = double(taken_bytes<TypeParam>(*device) - before);
  EXPECT_GT(planned, 50e6);
  // Cpu kernels plan scratch memory for their largest blocks, but touch only what a shape needs.
  const double least = std::is_same_v<typename TypeParam::backend, isotope::backend::cpu> ? 0.8 : 0.95;
  EXPECT_LE(taken / planned, 1.05) << taken << " bytes taken, " << planned << " planned";
  EXPECT_GE(taken / planned, least) << taken << " bytes taken, " << planned << " planned";
}

TEST(allocation_counter, counts) {
#if !COUNTS_ALLOCATIONS
  GTEST_SKIP() << "a sanitizer has replaced operator new";
#endif
  const auto before = allocations.load();
  ::operator delete(::operator new(1));  // a function call, since compilers may remove a new-expression
  EXPECT_EQ(allocations.load() - before, 1);
}

}  // namespace allocation_test
