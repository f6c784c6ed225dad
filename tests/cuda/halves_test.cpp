/// Layers of decoding as two launches: which runs of launches become halves is checked anywhere, and their results, against those of separate launches, on a GPU of compute capability 9.0.
#include "device.hpp"

#include <isotope/backend/cuda.hpp>
#include <isotope/isotope.hpp>
#include <isotope/kernels/cuda/joined/halves.hpp>
#include <isotope/plan/dynamic.hpp>

#include <cmath>
#include <deque>
#include <string>
#include <vector>

namespace isotope::cuda {
namespace halves_test {

using bf16 = target<backend::cuda, precision::bf16, kernels::native>;
constexpr model::gpt small{2, 12, 768, 5003, 1024};

struct kept final : constant_store, code_store {
  std::uint64_t keep(std::span<const std::byte>) override { return 1 << 20; }
  const device_code* keep(std::string_view name, std::string) override {
    return &all.emplace_back(device_code{.name = names.emplace_back(name), .source = {}, .bytes = {}});
  }
  std::deque<device_code> all;
  std::deque<std::string> names;
};
device_limits hopper() {
  device_limits d;
  d.compute = 90, d.multiprocessors = 132, d.shared_bytes = 227 << 10;
  return d;
}
/// The launches of a plan after all joins.
struct launches {
  kept store;
  std::vector<dispatch> all;
  std::size_t layers = 0;

  launches(const model::gpt& g, int rows, const device_limits& d, bool batch_invariant = false) {
    const auto planned = plan_inference<bf16>(model::gpt_cached_logits_of{g, rows, rows, 0}, 0, true, batch_invariant);
    EXPECT_TRUE(planned.ok()) << (planned ? std::string() : planned.error().line());
    const plan_view p = *planned;
    region_addresses base;
    std::uint64_t next = std::uint64_t(1) << 40;
    for (std::size_t k = 0; k < base.at.size(); ++k) base.at[k] = next, next += std::uint64_t(p.totals.region[k] + 4095) / 4096 * 4096;
    base.scalars = next;
    all = cuda::record(p, {kernel_table<bf16>, code_of<bf16>(), {}}, base, {}, d, phase_always, store, store);
    outputs = {base[value_kind::output], p.totals.region[std::size_t(value_kind::output)]};
    steps = p.steps.size();
    join_appends(all);
    join_norms(all, outputs);
  }
  /// Joins the halves, after `change`.
  template <class Change> void join(const Change& change, const device_limits& d = hopper()) {
    change(all);
    decode_halves halves(all, outputs, d);
    layers = halves.layers();
    if (halves.found()) halves.join(scratch);
  }
  void join(const device_limits& d = hopper()) {
    join([](std::vector<dispatch>&) {}, d);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> n;
    for (const dispatch& x : all) n.emplace_back(x.function);
    return n;
  }
  static constexpr std::uint64_t scratch = std::uint64_t(1) << 50;
  range outputs;
  std::size_t steps = 0;
};

TEST(cuda_halves, take_the_place_of_all_launches_of_layers_and_logits) {
  for (const int rows : {1, 2, 8}) {
    launches l(small, rows, hopper());
    const std::size_t before = l.all.size();
    l.join();
    EXPECT_EQ(l.layers, 2u) << rows << ' ' << ::testing::PrintToString(l.names());
    ASSERT_EQ(l.all.size(), before - 3 - 2 * 5 - 2 + 2 * 2 + 1) << rows;
    const std::string before_name = rows == 1 ? "decode_" : "decode_few_";
    const auto names = l.names();
    const std::vector<std::string> last(names.end() - 5, names.end());
    std::vector<std::string> wanted;
    for (const char* what : {"attention", "mlp", "attention", "mlp", "logits"}) wanted.push_back(before_name + what + "_768");
    EXPECT_EQ(last, wanted);
    // Each step of the plan that a launch did is done by one still, and a half waits for the one before alone, so that it starts early.
    std::vector<int> done(l.steps);
    for (const dispatch& d : l.all) {
      ++done[std::size_t(d.step)];
      if (d.joined >= 0) ++done[std::size_t(d.joined)];
      for (const auto k : d.also) ++done[std::size_t(k)];
    }
    for (const int n : done) EXPECT_LE(n, 1);
    EXPECT_EQ(std::count(done.begin(), done.end(), 1), std::ptrdiff_t(before + 2 * 3))
        << "two norms and an append of each layer were joined before";
    const auto waits = graph_edges(l.all);
    EXPECT_TRUE(find_hazards(l.all, waits).empty());
    const auto early = early_starts(l.all, waits, hopper());
    EXPECT_EQ(std::vector<std::uint8_t>(early.end() - 4, early.end()), std::vector<std::uint8_t>(4, 1));
  }
}
TEST(cuda_halves, are_left_out_for_everything_that_their_kernels_do_not_take) {
  const auto layers = [](const model::gpt& g, int rows, const device_limits& d = hopper(), bool batch_invariant = false) {
    launches l(g, rows, d, batch_invariant);
    l.join(d);
    return l.layers;
  };
  EXPECT_EQ(layers(small, 1), 2u);
  EXPECT_EQ(layers(small, 9), 0u) << "rows";
  EXPECT_EQ(layers(small, 1, hopper(), true), 0u) << "rows are to have the same bits in every batch";
  EXPECT_EQ(layers({2, 12, 768, 5003, 2048}, 1), 0u) << "positions";
  EXPECT_EQ(layers({2, 6, 768, 5003, 1024}, 1), 0u) << "elements of a head";
  EXPECT_EQ(layers({2, 16, 1024, 5003, 1024}, 1), 0u) << "columns";
  device_limits other = hopper();
  other.compute = 100;
  EXPECT_EQ(layers(small, 1, other), 0u);
  other = hopper();
  other.switches.no_matrix_units = true;
  EXPECT_EQ(layers(small, 1, other), 0u);
  other = hopper();
  other.shared_bytes = 100 << 10;
  EXPECT_EQ(layers(small, 1, other), 0u);
}
TEST(cuda_halves, are_left_out_if_anything_else_touches_what_they_no_longer_write) {
  const auto layers = [](const auto& change) {
    launches l(small, 1, hopper());
    l.join(change);
    return l.layers;
  };
  /// The last launch that the halves replace is that of the logits; before it are the norm, and the five of a layer.
  const auto behind = [](std::vector<dispatch>& all, std::size_t back) -> dispatch& { return all[all.size() - 1 - back]; };
  ASSERT_EQ(layers([](auto&) {}), 2u);
  EXPECT_EQ(layers([&](auto& all) {
              dispatch reader = behind(all, 0);
              reader.code = nullptr, reader.reads = {behind(all, 2).writes[0]}, reader.writes = {{100, 16}};
              all.push_back(reader);
            }),
            0u)
      << "a later launch reads the last residual";
  EXPECT_EQ(layers([&](auto& all) {
              dispatch between = behind(all, 0);
              between.code = nullptr, between.reads = {{100, 16}}, between.writes = {{200, 16}};
              all.insert(all.end() - 4, between);
            }),
            0u)
      << "another launch is between them";
  const auto with = [&](std::size_t back, const auto& edit) {
    return layers([&](auto& all) {
      dispatch& d = behind(all, back);
      auto g = arguments_in<gpu::gemm>(d, fatbins::matmul_rows_mma);
      ASSERT_TRUE(g);
      edit(*g);
      std::memcpy(d.arguments.data(), &*g, sizeof *g);
    });
  };
  EXPECT_EQ(with(2, [](gpu::gemm&) {}), 2u);
  EXPECT_EQ(with(2, [](gpu::gemm& g) { g.alpha = 2; }), 0u) << "one layer and no logits behind it";
  EXPECT_EQ(with(2, [](gpu::gemm& g) { g.operands[1].at += 1536; }), 0u) << "another residual";
  EXPECT_EQ(with(2, [](gpu::gemm& g) { g.b.line += 8; }), 0u);
  EXPECT_EQ(with(3, [](gpu::gemm& g) { g.norm.centered = 0; }), 0u);
  EXPECT_EQ(with(3, [](gpu::gemm& g) { g.fast = gpu::case_bias_gelu_erf; }), 0u);
  EXPECT_EQ(with(3, [](gpu::gemm& g) { g.chain[0].store = 0; }), 0u) << "it writes what GELU is computed from, too";
  EXPECT_EQ(with(4, [](gpu::gemm& g) { g.a.at += 1536; }), 0u) << "not of the attention's result";
  EXPECT_EQ(with(0, [](gpu::gemm& g) { g.beta = 1; }), 0u);
  for (const int changed : {0, 1, 2}) {
    launches l(small, 1, hopper());
    const std::size_t before = l.all.size();
    l.join([&](auto& all) {
      if (changed < 2) all[std::size_t(changed)].code = nullptr;
      else all[2].writes[0].end -= 2;
    });
    EXPECT_EQ(l.layers, 2u);
    ASSERT_EQ(l.all.size(), before - 2 * 5 - 2 + 2 * 2 + 1) << "rows that something else computes are read: " << changed;
    EXPECT_EQ(l.names()[3], "decode_attention_768");
  }
  EXPECT_EQ(with(7, [](gpu::gemm& g) { g.b.at += 8; }), 1u) << "the layers behind it have halves";
}

/// Logits of steps at the positions [first, first + steps) of each row.
struct decoding {
  std::vector<std::int32_t> sequence, position;
};
class on_a_device {
 public:
  on_a_device(const model::gpt& g, int rows, bool halves) : vocab_(g.vocab) {
    auto o = cuda_test::test_options();
    o.diagnose.no_halves = !halves;
    device_ = std::make_unique<device<bf16>>(*isotope_test::there(device<bf16>::open(o)));
    auto s = device_->load(*plan_inference<bf16>(model::gpt_cached_logits_of{g, rows, rows, 0}));
    EXPECT_TRUE(s.ok()) << (s ? std::string() : s.error().line());
    session_ = std::make_unique<session<bf16>>(*std::move(s));
    session_->initialize(11);
  }
  std::vector<float> step(const decoding& d, int seed) {
    std::vector<std::int32_t> tokens;
    for (std::size_t k = 0; k < d.sequence.size(); ++k)
      tokens.push_back(std::int32_t((977 * k + 131 * std::size_t(seed)) % std::size_t(vocab_)));
    EXPECT_TRUE(session_->set<std::int32_t>("tokens", tokens).ok() && session_->set<std::int32_t>("sequence", d.sequence).ok() &&
                session_->set<std::int32_t>("position", d.position).ok());
    EXPECT_TRUE(session_->run_plan(0).ok());
    const auto y = session_->output<bf16::precision::storage>("output");
    EXPECT_TRUE(y.ok());
    std::vector<float> all;
    for (const auto x : *y) all.push_back(float(x));
    return all;
  }
  bool has_halves() const {
    for (const auto& l : session_->launches())
      if (l.code.starts_with("decode_")) return true;
    return false;
  }

 private:
  std::int64_t vocab_;
  std::unique_ptr<device<bf16>> device_;
  std::unique_ptr<session<bf16>> session_;
};
/// The root of the mean squared difference, in parts of that of the numbers.
double difference(const std::vector<float>& a, const std::vector<float>& b, std::size_t from, std::size_t count) {
  double d = 0, n = 0;
  for (std::size_t i = from; i < from + count; ++i) d += std::pow(double(a[i]) - double(b[i]), 2), n += std::pow(double(b[i]), 2);
  return std::sqrt(d / n);
}
/// Both round the same numbers to bf16 (2^-9 each), separate launches the residual, too, four times in the two layers: logits differ by a few roundings in quadrature. A key
/// that is left out or a part that is added twice changes them by more than a tenth.
constexpr double tolerance = 0.02;

TEST(cuda_halves, give_the_logits_of_separate_launches_step_by_step) {
  if (cuda_test::emulated() || cuda_test::test_device().context->physical().limits.compute != 90)
    GTEST_SKIP() << "no GPU of compute capability 9.0 is here";
  for (const int rows : {1, 2, 3, 8}) {
    on_a_device one(small, rows, true), other(small, rows, false);
    ASSERT_TRUE(one.has_halves());
    ASSERT_FALSE(other.has_halves());
    const std::size_t V = std::size_t(small.vocab);
    const auto compare = [&](const decoding& d, int seed, const char* what) {
      const auto a = one.step(d, seed), b = other.step(d, seed), again = one.step(d, seed);
      EXPECT_EQ(a, again) << "the same step gives the same bits";
      for (int r = 0; r < rows; ++r)
        EXPECT_TRUE(difference(a, b, std::size_t(r) * V, V) <= tolerance)
            << what << ": row " << r << " of " << rows << " at " << d.position[std::size_t(r)] << " differs by "
            << difference(a, b, std::size_t(r) * V, V);
    };
    decoding d;
    for (int r = 0; r < rows; ++r) d.sequence.push_back(r), d.position.push_back(0);
    for (int t = 0; t < 70; ++t) {
      for (auto& p : d.position) p = t;
      compare(d, t, "one after the other");
    }
    if (rows == 1) continue;
    // Rows of one sequence are tokens that follow each other; a row without a sequence counts for nothing; and the last of two rows with one place is kept.
    decoding together;
    for (int r = 0; r < rows; ++r) together.sequence.push_back(1), together.position.push_back(70 + r);
    compare(together, 100, "tokens of one sequence");
    std::swap(together.position.front(), together.position.back());
    compare(together, 101, "in another order");
    together.sequence[1] = -1;
    compare(together, 102, "an idle row");
    together.position[0] = together.position[std::size_t(rows - 1)];
    compare(together, 103, "two rows with the same place");
    for (auto& p : together.position) ++p;
    compare(together, 104, "behind them");
  }
}
TEST(cuda_halves, attend_to_all_positions_of_a_full_cache) {
  if (cuda_test::emulated() || cuda_test::test_device().context->physical().limits.compute != 90)
    GTEST_SKIP() << "no GPU of compute capability 9.0 is here";
  on_a_device one(small, 1, true), other(small, 1, false);
  for (int t = 0; t < 1024; ++t) {
    const auto a = one.step({{0}, {t}}, t), b = other.step({{0}, {t}}, t);
    const double d = difference(a, b, 0, a.size());
    ASSERT_TRUE(d <= tolerance) << t << ": " << d;
  }
}

}  // namespace halves_test
}  // namespace isotope::cuda
