/// The edges of a step's graph: each that is left out is found by the checker, and most show in the results of the emulated device, which runs nodes as late or
/// as early as the edges allow.
#include "device.hpp"

#include <isotope/backend/cuda.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>

#include <set>
#include <string>
#include <vector>

namespace isotope::cuda {
namespace edges_test {

using f32 = target<backend::cuda, precision::f32, kernels::reference>;
constexpr model::gpt tiny{1, 2, 16, 20, 8};

/// A training step on the emulated device, with the arena in a known state before each run.
class step {
 public:
  step() : device_(*isotope_test::there(device<f32>::open(cuda_test::emulated_options()))) {
    auto s = device_.load(*plan_training<f32>(model::gpt_loss_of{tiny, 2, 8}));
    EXPECT_TRUE(s.ok()) << (s ? std::string() : s.error().line());
    session_ = std::make_unique<session<f32>>(*std::move(s));
    session_->initialize(3);
    std::vector<std::int32_t> tokens, targets;
    for (int i = 0; i < 16; ++i) tokens.push_back(i * 5 % 20), targets.push_back(i * 3 % 20);
    EXPECT_TRUE(session_->put(batch{tokens, targets}).ok());
    step_scalars x;
    x.optimizer_step = 1;
    x.learning_rate = 0.01f;
    session_->set_scalars(x);
    dispatches = session_->dispatches();
    first_.resize(std::size_t(session_->arena().bytes()));
    EXPECT_TRUE(session_->queue().staging().download(session_->arena(), 0, first_).ok());
    // What a step writes before it reads it begins as NaN, so that a value that is read too early shows.
    const std::uint64_t base = session_->arena().address();
    std::vector<std::uint8_t> touched(first_.size(), 0);
    const auto touch = [&](const std::vector<range>& all, bool writes) {
      for (const auto& r : all)
        for (auto i = std::max(r.first, base); i < std::min(r.end, base + first_.size()); ++i) {
          auto& t = touched[std::size_t(i - base)];
          if (t == 0 && writes) first_[std::size_t(i - base)] = std::byte{0xff};
          t = 1;
        }
    };
    for (const dispatch& d : dispatches) touch(d.reads, false), touch(d.writes, true);
  }
  /// The arena after the step in a graph with these edges.
  std::vector<std::byte> after(const dispatch_edges& waits) {
    auto& parts = session_->queue().recorder();
    EXPECT_TRUE(session_->queue().staging().upload(session_->arena(), 0, first_).ok());
    step_graph graph(parts.device);
    auto built = graph.build(*parts.functions, dispatches, waits);
    EXPECT_TRUE(built.ok()) << (built ? std::string() : built.error().line());
    auto value = parts.device->submit(graph.handle());
    EXPECT_TRUE(value.ok() && parts.device->wait(*value).ok());
    std::vector<std::byte> now(first_.size());
    EXPECT_TRUE(session_->queue().staging().download(session_->arena(), 0, now).ok());
    return now;
  }
  std::vector<dispatch> dispatches;

 private:
  device<f32> device_;
  std::unique_ptr<session<f32>> session_;
  std::vector<std::byte> first_;
};

TEST(cuda_edges, give_the_same_bits_in_every_order_that_they_allow) {
  if (!cuda_test::emulator().there()) GTEST_SKIP() << "the emulated driver is not there";
  const cuda_test::emulator_settings restored;
  step s;
  const auto waits = plan_edges(s.dispatches);
  EXPECT_TRUE(find_hazards(s.dispatches, waits).empty());
  cuda_test::emulator().set_order(isotope_emulated::node_order::creation);
  const auto want = s.after(waits);
  for (std::size_t late = 0; late < s.dispatches.size(); ++late) {
    cuda_test::emulator().set_order(isotope_emulated::node_order::adverse, std::int64_t(late));
    ASSERT_TRUE(s.after(waits) == want) << "with " << s.dispatches[late].function << " as late as possible";
  }
}
TEST(cuda_edges, that_are_left_out_are_found_by_the_checker_and_show_in_the_results) {
  if (!cuda_test::emulator().there()) GTEST_SKIP() << "the emulated driver is not there";
  const cuda_test::emulator_settings restored;
  step s;
  const auto waits = plan_edges(s.dispatches);
  const auto want = s.after(waits);
  int edges = 0, shown = 0;
  std::string hidden;
  for (std::size_t i = 0; i < waits.size(); ++i)
    for (std::size_t k = 0; k < waits[i].size(); ++k) {
      auto fewer = waits;
      fewer[i].erase(fewer[i].begin() + std::ptrdiff_t(k));
      ASSERT_FALSE(find_hazards(s.dispatches, fewer).empty()) << waits[i][k] << " to " << i;
      cuda_test::emulator().set_order(isotope_emulated::node_order::adverse, waits[i][k]);
      ++edges;
      if (s.after(fewer) != want) ++shown;
      else hidden += std::string(s.dispatches[waits[i][k]].function) + " to " + std::string(s.dispatches[i].function) + "\n";
    }
  EXPECT_GT(edges, 40);
  // An edge can hide: what is read too early may have the right value already, as the arena has after an earlier step.
  EXPECT_GE(10 * shown, 8 * edges) << shown << " of " << edges << " show; these do not:\n" << hidden;
}
TEST(cuda_edges, option_that_leaves_one_out_changes_the_graph_of_a_session) {
  if (!cuda_test::emulator().there()) GTEST_SKIP() << "the emulated driver is not there";
  const cuda_test::emulator_settings restored;
  const auto losses = [](std::int32_t dropped) {
    auto o = cuda_test::emulated_options();
    o.diagnose.drop_barrier = dropped;
    auto d = isotope_test::there(device<f32>::open(o));
    auto s = d->load(*plan_training<f32>(model::gpt_loss_of{tiny, 2, 8}));
    EXPECT_TRUE(s.ok());
    s->initialize(3);
    const std::vector<std::int32_t> tokens(16, 7);
    std::vector<double> r;
    for (int i = 1; i <= 3; ++i) {
      step_scalars x;
      x.optimizer_step = i;
      x.learning_rate = 0.01f;
      r.push_back(s->step(batch{tokens, tokens}, x).loss);
    }
    return r;
  };
  const auto want = losses(-1);
  int wrong = 0;
  for (int k = 0; k < 8; ++k) wrong += losses(k) != want;
  EXPECT_GE(wrong, 4);
}

}  // namespace edges_test
}  // namespace isotope::cuda
