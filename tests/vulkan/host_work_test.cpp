/// A step whose commands are recorded takes the calling thread two calls of the driver, and time that does not depend on the number of kernels.
#include "call_counter.hpp"
#include "device.hpp"

#include <isotope/backend/vulkan.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>

#include <algorithm>
#include <array>
#include <ctime>
#include <string>
#include <vector>

namespace isotope::vulkan {
namespace host_work_test {

using f32 = target<backend::vulkan, precision::f32, kernels::native>;
using vulkan_test::call_counter;

/// x w w ... w: matmuls that cannot be fused, so each is one kernel.
struct chain {
  int products;
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    auto x = s.input("x", {4, 4});  // (4, 4)
    const auto w = s.input("w", {4, 4});
    for (int i = 0; i < products; ++i) x = matmul(x, w);
    return x;
  }
};
/// x is the identity and w moves every column one to the right, so the result is w to the power of `products`.
session<f32> loaded(const device<f32>& d, int products) {
  auto s = d.load(*plan_inference<f32>(chain{products}));
  EXPECT_TRUE(s.ok()) << (s ? std::string() : s.error().line());
  const auto x = *s->input<float>("x"), w = *s->input<float>("w");
  for (std::size_t i = 0; i < 4; ++i) x[5 * i] = 1, w[4 * i + (i + 1) % 4] = 1;
  return *std::move(s);
}
std::vector<float> power(int products) {
  std::vector<float> y(16);
  for (std::size_t i = 0; i < 4; ++i) y[4 * i + (i + std::size_t(products)) % 4] = 1;
  return y;
}
device<f32> opened() { return *isotope_test::there(device<f32>::open()); }  // without the validation layer, which does work of its own
constexpr model::gpt tiny{1, 2, 16, 20, 8};
session<f32> loaded_gpt(const device<f32>& d) {
  auto s = d.load(*plan_training<f32>(model::gpt_loss_of{tiny, 2, 8}), *plan_inference<f32>(model::gpt_loss_of{tiny, 2, 8}));
  EXPECT_TRUE(s.ok()) << (s ? std::string() : s.error().line());
  s->initialize(3);
  return *std::move(s);
}

TEST(vulkan_host_work, of_a_recorded_step_is_a_submission_and_a_wait_for_50_kernels_as_for_500) {
  const auto d = opened();
  for (const int products : {51, 502}) {
    auto s = loaded(d, products);
    ASSERT_GE(s.dispatches().size(), std::size_t(products));
    const call_counter calls(*d.shared());
    const auto launches = s.counters().launches;
    for (int i = 0; i < 8; ++i) EXPECT_FALSE(s.run({}).skipped);
    EXPECT_EQ(s.counters().launches - launches, 8 * std::int64_t(s.dispatches().size()));
    EXPECT_EQ(calls.of({"QueueSubmit2"}), 8);
    EXPECT_EQ(calls.of({"WaitSemaphores"}), 8);
    EXPECT_EQ(calls.all(), 16) << "no commands are recorded and no objects are created";
    const auto y = *s.output<float>("output");
    EXPECT_EQ(std::vector<float>(y.begin(), y.end()), power(products));
  }
}
TEST(vulkan_host_work, of_training_and_evaluation_is_a_submission_and_a_wait_each) {
  const auto d = opened();
  auto s = loaded_gpt(d);
  const std::vector<std::int32_t> tokens(16, 7);
  const batch b{tokens, tokens};
  const call_counter calls(*d.shared());
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(s.step(b, {}).skipped);
    EXPECT_GT(s.evaluate(b), 0);
  }
  EXPECT_EQ(calls.of({"QueueSubmit2"}), 8);
  EXPECT_EQ(calls.of({"WaitSemaphores"}), 8);
  EXPECT_EQ(calls.all(), 16);
}

double thread_microseconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e6 * double(t.tv_sec) + 1e-3 * double(t.tv_nsec);
}
/// The driver is replaced by functions that return at once.
TEST(vulkan_host_work, of_the_library_takes_no_more_time_for_500_kernels_than_for_50) {
  const auto d = opened();
  std::array<session<f32>, 2> sessions{loaded(d, 50), loaded(d, 500)};
  for (auto& s : sessions) s.run({});
  auto& f = d.shared()->f();
  const functions driver = f;
  f.QueueSubmit2 = [](VkQueue, std::uint32_t, const VkSubmitInfo2*, VkFence) { return VK_SUCCESS; };
  f.WaitSemaphores = [](VkDevice, const VkSemaphoreWaitInfo*, std::uint64_t) { return VK_SUCCESS; };
  constexpr int runs = 200;
  std::array<double, 2> least{1e9, 1e9};  // microseconds per step, the least of several rounds, since other load makes some rounds longer
  for (int round = 0; round < 25; ++round)
    for (std::size_t k = 0; k < 2; ++k) {
      const double before = thread_microseconds();
      for (int i = 0; i < runs; ++i) sessions[k].run({});
      least[k] = std::min(least[k], (thread_microseconds() - before) / runs);
    }
  f.QueueSubmit2 = driver.QueueSubmit2;
  f.WaitSemaphores = driver.WaitSemaphores;
  RecordProperty("microseconds_50", std::to_string(least[0]));
  RecordProperty("microseconds_500", std::to_string(least[1]));
  // Work per kernel, such as a loop over dispatches, would take ten times as long.
  EXPECT_TRUE(least[1] <= 2 * least[0]) << least[1] << " us a step of 500 kernels, " << least[0] << " us of 50";
}

TEST(vulkan_host_work, of_a_session_without_a_profile_has_no_clock_in_its_commands) {
  const auto d = opened();
  const std::vector<std::int32_t> tokens(16, 7);
  const batch b{tokens, tokens};
  call_counter calls(*d.shared());
  const auto clocks = [&] { return calls.of({"CreateQueryPool", "CmdResetQueryPool", "CmdWriteTimestamp2", "GetQueryPoolResults"}); };
  auto s = loaded_gpt(d);
  EXPECT_FALSE(s.step(b, {}).skipped);
  const auto kernels = std::int64_t(s.dispatches().size());
  EXPECT_GE(calls.of({"CmdDispatch"}), kernels) << "the commands were recorded and counted";
  EXPECT_EQ(clocks(), 0);
  calls.start_over();
  const auto profile = s.profile({});
  if (!profile && profile.error().code == errc::missing_feature) GTEST_SKIP() << profile.error().line();
  ASSERT_TRUE(profile.ok()) << profile.error().line();
  EXPECT_EQ(calls.of({"CmdWriteTimestamp2"}), 2 * kernels) << "a clock is seen";
  calls.start_over();
  EXPECT_FALSE(s.step(b, {}).skipped);
  EXPECT_EQ(calls.of({"QueueSubmit2"}), 1);
  EXPECT_EQ(calls.of({"WaitSemaphores"}), 1);
  EXPECT_EQ(calls.all(), 2) << "after a profile the same commands run as before it";
}

}  // namespace host_work_test
}  // namespace isotope::vulkan
