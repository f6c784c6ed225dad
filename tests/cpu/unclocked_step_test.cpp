// labels: alone
/// A step that is not measured does not read a clock.
#include <gtest/gtest.h>

#include <sys/syscall.h>
#include <unistd.h>
#include <atomic>
#include <ctime>
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>
#include <isotope/train/step_trace.hpp>
#include <vector>

namespace {
std::atomic<int> readings = 0;
}
/// Replaces the function of the C library for the program and all its libraries.
extern "C" int clock_gettime(clockid_t clock, timespec* out) noexcept {
  ++readings;
  return int(syscall(SYS_clock_gettime, clock, out));
}

namespace unclocked_step_test {

using namespace isotope;
using f32 = target<backend::cpu, precision::f32, kernels::native>;

double seconds() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

TEST(unclocked_step, asks_no_clock_and_a_traced_one_asks_around_each_launch) {
  constexpr model::gpt tiny{2, 2, 16, 20, 8};
  auto d = device<f32>::open({.threads = 1});  // one thread, since waiting workers read the clock
  ASSERT_TRUE(d.ok());
  auto s = d->load(*plan_training<f32>(model::gpt_loss_of{tiny, 2, 8}), *plan_inference<f32>(model::gpt_loss_of{tiny, 2, 8}));
  ASSERT_TRUE(s.ok());
  s->initialize(3);
  const std::vector<std::int32_t> tokens(16, 7);
  const batch b{tokens, tokens};
  int before = readings;
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(s->step(b, {}).skipped);
    EXPECT_GT(s->evaluate(b), 0);
  }
  EXPECT_EQ(readings - before, 0);
  before = readings;
  const auto trace = train::trace_step(*s, {&b, 1}, {}, seconds);
  ASSERT_TRUE(trace.ok());
  EXPECT_GE(readings - before, int(trace->launches.size())) << "a clock is seen";
}

}  // namespace unclocked_step_test
