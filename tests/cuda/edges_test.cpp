/// The edges of a step's graph: each that is left out is found by the checker, and most show in the results of the emulated device, which runs nodes as late or
/// as early as the edges allow.
#include "device.hpp"

#include <isotope/backend/cuda.hpp>
#include <isotope/isotope.hpp>
#include <isotope/kernels/cuda/joined/joined.hpp>
#include <isotope/plan/dynamic.hpp>

#include <cstring>
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
TEST(cuda_edges, are_a_chain_where_launches_move_megabytes_and_only_those_that_must_be_where_they_are_small) {
  // Launch 2 reads what 0 and 1 write, launch 3 what 2 does; 0 and 1 have nothing in common.
  const auto launches = [](std::int64_t bytes) {
    std::vector<cuda::dispatch> all(4);
    const auto at = [bytes](std::uint64_t k) { return cuda::range(0x1000'0000'0000 + (k << 32), bytes); };
    for (std::uint64_t k = 0; k < 4; ++k) all[k].writes = {at(k)};
    all[2].reads = {at(0), at(1)};
    all[3].reads = {at(2)};
    return all;
  };
  using lists = dispatch_edges;
  EXPECT_EQ(cuda::graph_edges(launches(1'000'000)), (lists{{}, {}, {1, 0}, {2}}));
  EXPECT_EQ(cuda::graph_edges(launches(4'000'000)), (lists{{}, {0}, {1}, {2}}));
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

static_assert(waits_inside("90a,80,compute_80", 90) && waits_inside("90,compute_90", 90) && waits_inside("80,compute_90", 120));
static_assert(!waits_inside("80,86,compute_86", 90), "code for older devices does not wait, even if it is compiled for this one");
static_assert(!waits_inside("90a", 100) && !waits_inside("100,compute_100", 90) && !waits_inside("", 90) &&
              !waits_inside("80,compute_80", 80));

/// A kernel that starts early, and reads and writes 16 bytes at these addresses, some of them before it waits.
dispatch node(std::vector<std::uint64_t> reads, std::uint64_t write, std::vector<std::uint64_t> early = {}) {
  static constexpr device_code code{"test", "test.cu", "code", "90,compute_90", ""};
  dispatch d;
  d.code = &code;
  d.starts_early = true;
  for (const auto at : reads) d.reads.emplace_back(at, 16);
  for (const auto at : early) d.early.emplace_back(at, 16);
  d.writes.emplace_back(write, 16);
  return d;
}
TEST(cuda_edges, let_a_kernel_start_early_unless_what_may_still_run_writes_what_it_reads_at_once) {
  device_limits hopper;
  hopper.compute = 90;
  const auto early = [&](const std::vector<dispatch>& all) { return early_starts(all, plan_edges(all), hopper); };
  using marks = std::vector<std::uint8_t>;
  // 100 is a weight that nothing writes
  EXPECT_EQ(early({node({0}, 16), node({16, 100}, 32, {100}), node({32, 100}, 48, {100})}), (marks{0, 1, 1}));
  EXPECT_EQ(early({node({0}, 16), node({16}, 32), node({16, 32}, 48, {16})}), (marks{0, 1, 0})) << "the first may still run";
  auto patient = node({16}, 32);
  patient.starts_early = false;
  EXPECT_EQ(early({node({0}, 16), patient, node({16, 32}, 48, {16})}), (marks{0, 0, 1})) << "the first has ended before the second starts";
  EXPECT_EQ(early({node({0}, 16), node({0}, 32), node({16, 32}, 48)}), (marks{0, 0, 0})) << "waits for two";
  dispatch copy;
  copy.writes.emplace_back(16, 16);
  EXPECT_EQ(early({copy, node({16}, 32), node({32}, 48)}), (marks{0, 0, 1})) << "a copy does not say that others may start";
  hopper.compute = 80;
  EXPECT_EQ(early({node({0}, 16), node({16}, 32)}), (marks{0, 0}));
}

TEST(cuda_joins, attention_appends_the_rows_itself_if_nothing_between_touches_them) {
  const auto made = [](std::int64_t N, std::uint64_t keys, std::uint64_t between) {
    dispatch append = node({1000, 2000, 3000, 3100}, 5000), other = node({between}, 9000), attend = node({5000, 6000, 3000, 3100}, 8000);
    append.writes.emplace_back(6000, 16);
    const gpu::cache_append_arguments a{5000, 6000, 1000, 2000, 3000, 3100, 36, 36, N, 2, 8, 2, 4};
    gpu::cached_heads h{};
    h.keys = keys, h.values = 6000, h.sequence = 3000, h.position = 3100, h.N = N, h.D = 32;
    append.code = &fatbins::cache_append, append.function = "cache_append_16";
    attend.code = &fatbins::attention_cached_hopper;
    const auto put = [](dispatch& d, const auto& x) { d.arguments.resize(sizeof x), std::memcpy(d.arguments.data(), &x, sizeof x); };
    put(append, a), put(attend, h);
    std::vector<dispatch> all{append, other, attend};
    join_appends(all);
    return all;
  };
  const auto joined = made(3, 5000, 7000);
  ASSERT_EQ(joined.size(), 2u);
  const auto h = arguments_in<gpu::cached_heads>(joined[1], fatbins::attention_cached_hopper);
  ASSERT_TRUE(h);
  EXPECT_EQ(h->k, 1000u);
  EXPECT_EQ(h->v, 2000u);
  EXPECT_EQ(h->k_stride, 36 * 8) << "a unit of 16 bytes has 8 elements";
  EXPECT_TRUE(joined::touches(joined[1].reads, {1000, 16}) && joined::touches(joined[1].writes, {5000, 16}) &&
              joined::touches(joined[1].writes, {6000, 16}));
  EXPECT_EQ(made(gpu::cached_most_appended + 1, 5000, 7000).size(), 3u);
  EXPECT_EQ(made(3, 5500, 7000).size(), 3u) << "other caches";
  EXPECT_EQ(made(3, 5000, 6000).size(), 3u) << "a step between them reads the cache";
}
TEST(cuda_joins, a_product_that_normalises_its_rows_gives_the_bits_of_two_launches) {
  if (!cuda_test::emulator().there()) GTEST_SKIP() << "the emulated driver is not there";
  using bf16 = target<backend::cuda, precision::bf16, kernels::native>;
  constexpr model::gpt size{1, 2, 256, 70, 8};
  constexpr int rows = 9;  // with fewer, the four multiprocessors of the emulated device run other kernels
  const auto logits = [&](bool apart, std::size_t& launches) {
    auto o = cuda_test::emulated_options();
    o.diagnose.no_joins = apart;
    auto d = isotope_test::there(device<bf16>::open(o));
    auto s = d->load(*plan_inference<bf16>(model::gpt_cached_logits_of{size, rows, rows, 0}));
    EXPECT_TRUE(s.ok());
    s->initialize(5);
    std::vector<std::int32_t> tokens, sequence;
    for (int k = 0; k < rows; ++k) tokens.push_back(7 * k), sequence.push_back(k == 4 ? -1 : k);
    const std::vector<std::int32_t> position(rows, 0);
    EXPECT_TRUE(s->template set<std::int32_t>("tokens", tokens).ok() && s->template set<std::int32_t>("sequence", sequence).ok() &&
                s->template set<std::int32_t>("position", position).ok());
    EXPECT_TRUE(s->run_plan(0).ok());
    launches = s->launches().size();
    const auto y = s->template output<bf16::precision::storage>("output");
    EXPECT_TRUE(y.ok());
    const auto bytes = std::as_bytes(*y);
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  std::size_t joined = 0, apart = 0;
  const auto one = logits(false, joined), two = logits(true, apart);
  EXPECT_EQ(one, two);
  EXPECT_EQ(joined + 2, apart);
}

}  // namespace edges_test
}  // namespace isotope::cuda
