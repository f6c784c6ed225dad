// labels: alone
#include "../../allocation_counter.hpp"

#include <isotope/backend/cpu.hpp>
#include <isotope/model/gpt.hpp>
#include <isotope/plan/program.hpp>

#include <gtest/gtest.h>

namespace allocation_test {
using namespace isotope;

template <class P> void steps_allocate_nothing() {
#if !COUNTS_ALLOCATIONS
  GTEST_SKIP() << "a sanitizer has replaced operator new";
#else
  using T = target<backend::cpu, P, kernels::portable>;
  const model::gpt_loss_of model{{2, 2, 64, 65, 70, 0.1}, 3, 70};
  auto plan = plan_training<T>(model, {});
  ASSERT_TRUE(plan.ok());
  const auto device = cpu::device<T>::open({.threads = 3});
  ASSERT_TRUE(device.ok());
  auto session = device->load(std::move(*plan));
  ASSERT_TRUE(session.ok());
  session->initialize(1);
  std::vector<std::int32_t> tokens(210), targets(210);
  for (int i = 0; i < 210; ++i) tokens[std::size_t(i)] = targets[std::size_t(i)] = i * 17 % 65;
  const batch b{tokens, targets};
  const auto step = [&] { return session->step(b, {.optimizer_step = 1, .clip_norm = 1}); };
  step();
  const auto before = allocations.load();
  ASSERT_FALSE(step().skipped);
  EXPECT_EQ(allocations.load() - before, 0);
  int* volatile kept = new int(3);  // volatile, since compilers may remove a pair of new and delete
  delete kept;
  EXPECT_GT(allocations.load() - before, 0);  // the counter works
#endif
}
TEST(portable_kernels, allocate_nothing_in_a_training_step_f32) { steps_allocate_nothing<precision::f32>(); }
TEST(portable_kernels, allocate_nothing_in_a_training_step_bf16) { steps_allocate_nothing<precision::bf16>(); }
}  // namespace allocation_test
