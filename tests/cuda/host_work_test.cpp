/// A step whose graph is made takes the calling thread one launch, a copy before and one after it, one event and the questions whether it is done, for any number
/// of kernels; a wait for several steps takes one question.
#include "device.hpp"

#include <isotope/kernels/cuda/reference/pool.h>
#include <isotope/backend/cuda.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <span>
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

/// Means of rows 0, and 1 and 2, of x: a kernel that reads where sequences start in the host's memory, and writes the means there, too.
struct means {
  std::shared_ptr<context> device;
  plan_recorder& recorder;
  memory upload, readback, other, rows, y;
  std::vector<dispatch> all;
  std::unique_ptr<step_graph> graph;

  memory allocated(memory_use use) const {
    auto m = memory::allocate(device, 256, use, "numbers");
    EXPECT_TRUE(m.ok());
    return *std::move(m);
  }
  explicit means(session<f32>& s) : device(s.queue().recorder().device), recorder(s.queue().recorder()) {
    upload = allocated(memory_use::upload), readback = allocated(memory_use::readback), other = allocated(memory_use::readback);
    rows = allocated(memory_use::device), y = allocated(memory_use::device);
    const std::array<float, 12> x{1, 2, 3, 4, 10, 20, 30, 40, 20, 40, 60, 80};
    EXPECT_TRUE(s.queue().upload(rows, 0, std::as_bytes(std::span(x))).ok());
    const std::array<std::int32_t, 3> starts{0, 1, 3};
    std::memcpy(upload.mapped(), starts.data(), sizeof starts);
    gpu::pool_arguments a{};
    a.x = rows.address(), a.starts = upload.address(), a.y = y.address();
    a.x_stride = a.y_stride = a.C = 4, a.N = 3, a.B = 2;
    dispatch in, k, out;
    in.copy = {upload.mapped(), upload.address(), 16, true};
    in.writes = {range(upload.address(), 16)};
    k.code = &fatbins::pool, k.function = "pool_f32_wide", k.count = per_block(2, 512);
    k.arguments.resize(sizeof a);
    std::memcpy(k.arguments.data(), &a, sizeof a);
    k.reads = {range(rows.address(), 48), range(upload.address(), 12)}, k.writes = {range(y.address(), 32)};
    k.host = {{offsetof(gpu::pool_arguments, starts)}, offsetof(gpu::pool_arguments, y_host)};
    out.copy = {readback.mapped(), y.address(), 32, false};
    out.reads = {range(y.address(), 32)};
    all = {in, k, out};
    record();
  }
  void record() {
    graph = std::make_unique<step_graph>(device);
    EXPECT_TRUE(recorder.record(graph.get(), all, {}).ok());
  }
  std::vector<float> run(memory& to) {
    const auto value = recorder.submit(*graph, all, upload.address(), upload.mapped(), to.mapped());
    if (!value || !device->wait(*value)) return {};
    std::vector<float> got(8);
    std::memcpy(got.data(), to.mapped(), 32);
    return got;
  }
};
const std::vector<float> both_means{1, 2, 3, 4, 15, 30, 45, 60};

TEST_F(cuda_host_work, of_kernels_that_reach_the_memory_of_the_host_is_a_launch_and_an_event) {
  auto s = loaded(d, 3);
  means m(s);
  ASSERT_NE(m.graph->direct(), nullptr);
  calls();
  EXPECT_EQ(m.run(m.readback), both_means);
  EXPECT_EQ(calls(), (counts{{"cuGraphLaunch", 1}, {"cuEventRecord", 1}, {"cuEventQuery", 1}}));
  std::memset(m.readback.mapped(), 0, 32);
  EXPECT_EQ(m.run(m.readback), both_means);
  calls();
  EXPECT_EQ(m.run(m.other), both_means) << "of another frame";
  EXPECT_EQ(calls(), calls_of(1));
}
TEST_F(cuda_host_work, of_other_launches_has_copies) {
  auto s = loaded(d, 3);
  const auto copies_of = [&](const auto& change) -> std::string {
    means m(s);
    change(m.all);
    m.record();
    return m.graph->direct() == nullptr ? "all" : m.graph->copies_inputs() ? "inputs" : "none";
  };
  EXPECT_EQ(copies_of([](auto&) {}), "none");
  EXPECT_EQ(copies_of([](auto& all) { all[1].host.output = -1; }), "all") << "it writes to the device alone";
  EXPECT_EQ(copies_of([](auto& all) { all[1].writes.clear(); }), "all") << "outputs are somebody else's";
  EXPECT_EQ(copies_of([](auto& all) { all.insert(all.begin() + 1, all[1]); }), "all") << "two kernels write outputs";
  EXPECT_EQ(copies_of([](auto& all) { all.pop_back(); }), "all") << "outputs stay on the device";
  EXPECT_EQ(copies_of([](auto& all) { all[2].copy.bytes = 1 << 20; }), "all") << "outputs are large";
  EXPECT_EQ(copies_of([](auto& all) { all[1].host.inputs.clear(); }), "inputs") << "it reads memory of the device";
  EXPECT_EQ(copies_of([](auto& all) { all[1].reads.push_back(range(all[0].copy.device + 4, 4)); }), "inputs")
      << "it reads something else there";
  EXPECT_EQ(copies_of([](auto& all) { all[1].writes.push_back(range(all[0].copy.device, 4)); }), "inputs") << "it writes to its inputs";
  const auto large = [](auto& all) { all[0].copy.bytes = 1 << 20, all[1].reads[1] = range(all[0].copy.device, 1 << 15); };
  EXPECT_EQ(copies_of(large), "inputs");

  means m(s);
  m.all[1].host.inputs.clear();
  m.record();
  calls();
  EXPECT_EQ(m.run(m.readback), both_means);
  EXPECT_EQ(calls(), (counts{{"cuMemcpyHtoDAsync", 1}, {"cuGraphLaunch", 1}, {"cuEventRecord", 1}, {"cuEventQuery", 1}}));
}

}  // namespace host_work_test
}  // namespace isotope::cuda
