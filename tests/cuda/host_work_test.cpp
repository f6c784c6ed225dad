/// A step whose graph is made takes the calling thread one launch, a copy before and one after it, one event and the questions whether it is done, for any number
/// of kernels; a wait for several steps takes one question.
#include "device.hpp"

#include <isotope/backend/cuda.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace isotope::cuda {
namespace host_work_test {

using f32 = target<backend::cuda, precision::f32, kernels::native>;
using cuda_test::emulator;

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
constexpr model::gpt tiny{1, 2, 16, 20, 8};

/// The calls of the emulated driver since the last question, without the executions of kernels. A context is made current and left around each use.
std::map<std::string, int> calls() {
  std::map<std::string, int> all;
  std::istringstream lines(emulator().listing());
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("kernel") && line != "cuCtxPushCurrent" && line != "cuCtxPopCurrent") ++all[line];
  return all;
}
using counts = std::map<std::string, int>;

struct cuda_host_work : testing::Test {
  cuda_test::emulator_settings restored;
  device<f32> d;
  cuda_host_work() : d(*isotope_test::there(device<f32>::open(cuda_test::emulated_options()))) {}
};

/// The calls of `n` runs.
counts calls_of(int n) {
  counts all;
  for (const char* entry : {"cuMemcpyHtoDAsync", "cuGraphLaunch", "cuMemcpyDtoHAsync", "cuEventRecord", "cuEventQuery"}) all[entry] = n;
  return all;
}

TEST_F(cuda_host_work, of_a_recorded_step_is_a_launch_two_copies_an_event_and_a_question_for_50_kernels_as_for_500) {
  for (const int products : {51, 502}) {
    auto s = loaded(d, products);
    ASSERT_GE(s.dispatches().size(), std::size_t(products));
    EXPECT_FALSE(s.run({}).skipped);
    calls();
    const auto launches = s.counters().launches;
    for (int i = 0; i < 8; ++i) EXPECT_FALSE(s.run({}).skipped);
    EXPECT_EQ(s.counters().launches - launches, 8 * std::int64_t(s.dispatches().size()));
    EXPECT_EQ(calls(), calls_of(8));
    const auto y = *s.output<float>("output");
    EXPECT_EQ(std::vector<float>(y.begin(), y.end()), power(products));
  }
}
TEST_F(cuda_host_work, of_training_and_evaluation_is_a_launch_each) {
  auto s = d.load(*plan_training<f32>(model::gpt_loss_of{tiny, 2, 8}), *plan_inference<f32>(model::gpt_loss_of{tiny, 2, 8}));
  ASSERT_TRUE(s.ok()) << s.error().line();
  s->initialize(3);
  const std::vector<std::int32_t> tokens(16, 7);
  const batch b{tokens, tokens};
  s->step(b, {});
  s->evaluate(b);
  calls();
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(s->step(b, {}).skipped);
    EXPECT_GT(s->evaluate(b), 0);
  }
  EXPECT_EQ(calls(), calls_of(8));
}
TEST_F(cuda_host_work, of_waiting_for_one_of_the_steps_in_flight_is_one_question_for_all_before_it) {
  auto s = loaded(d, 3);
  s.run({});
  std::vector<pending_step> flying;
  for (std::size_t k = 0; k < decltype(s)::frames; ++k) flying.push_back(s.submit(step_scalars{}));
  calls();
  EXPECT_FALSE(s.collect(flying[3]).skipped);
  EXPECT_EQ(calls(), (counts{{"cuEventQuery", 1}}));
  for (int k = 0; k < 3; ++k) EXPECT_FALSE(s.collect(flying[std::size_t(k)]).skipped);
  EXPECT_EQ(calls(), counts{});
  for (auto k = flying.begin() + 4; k != flying.end(); ++k) EXPECT_FALSE(s.collect(*k).skipped);
}
TEST_F(cuda_host_work, of_waiting_sleeps_between_questions) {
  auto s = loaded(d, 3);
  s.run({});
  calls();
  emulator().set_fault("cuEventQuery", 600, 0, 20);  // not ready, 20 times
  EXPECT_FALSE(s.run({}).skipped);
  EXPECT_EQ(calls().at("cuEventQuery"), 21);
}

}  // namespace host_work_test
}  // namespace isotope::cuda
