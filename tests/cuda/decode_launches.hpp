#pragma once
/// What tests of decoding share: the launches of a plan with few rows, and steps on a GPU.
#include "device.hpp"

#include <isotope/backend/cuda.hpp>
#include <isotope/isotope.hpp>
#include <isotope/kernels/cuda/joined/whole_step.hpp>
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
inline device_limits hopper() {
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
    const auto planned =
        plan_inference<bf16>(model::gpt_cached_logits_of{g, rows, rows, 0}, 0, true, false, nullptr, nullptr, batch_invariant);
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
  /// Joins the whole step. Returns whether one launch takes it.
  bool join_step(const device_limits& d = hopper()) {
    decode_whole_step step(all, outputs, d);
    if (!step.takes_one_launch()) return false;
    layers = step.layers();
    step.join(step.whole_step(scratch));
    return true;
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

/// Logits of steps at the positions [first, first + steps) of each row.
struct decoding {
  std::vector<std::int32_t> sequence, position;
};
class on_a_device {
 public:
  /// tokens: of a step; 0: as many as rows.
  on_a_device(const model::gpt& g, int rows, bool halves, bool joins = true, int tokens = 0, bool whole_step = false, bool row_norms = true)
      : vocab_(g.vocab) {
    auto o = cuda_test::test_options();
    o.diagnose.no_row_norms = !row_norms;
    o.diagnose.no_whole_step = !whole_step;
    o.diagnose.no_halves = !halves;
    o.diagnose.no_joins = !joins;
    device_ = std::make_unique<device<bf16>>(*isotope_test::there(device<bf16>::open(o)));
    auto s = device_->load(*plan_inference<bf16>(model::gpt_cached_logits_of{g, rows, tokens == 0 ? rows : tokens, 0}));
    EXPECT_TRUE(s.ok()) << (s ? std::string() : s.error().line());
    session_ = std::make_unique<session<bf16>>(*std::move(s));
    session_->initialize(11);
  }
  /// first: the number of the first row, which its token follows from.
  std::vector<float> step(const decoding& d, int seed, std::size_t first = 0) {
    std::vector<std::int32_t> tokens;
    for (std::size_t k = first; k < first + d.sequence.size(); ++k)
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
  bool has_whole_step() const {
    for (const auto& l : session_->launches())
      if (l.code.starts_with("decode_step_")) return true;
    return false;
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
inline double difference(const std::vector<float>& a, const std::vector<float>& b, std::size_t from, std::size_t count) {
  double d = 0, n = 0;
  for (std::size_t i = from; i < from + count; ++i) d += std::pow(double(a[i]) - double(b[i]), 2), n += std::pow(double(b[i]), 2);
  return std::sqrt(d / n);
}
/// Both round the same numbers to bf16 (2^-9 each), separate launches the residual, too, four times in the two layers: logits differ by a few roundings in quadrature. A key
/// that is left out or a part that is added twice changes them by more than a tenth.
constexpr double tolerance = 0.02;
/// Steps of a small model: results of `one` have the same bits when they are computed again, and are near those of `other`.
inline void compare_steps(on_a_device& one, on_a_device& other, int rows) {
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
  for (int t = 0; t < 70; t += cuda_test::emulated() ? 69 : 1) {
    for (auto& p : d.position) p = t;
    compare(d, t, "one after the other");
  }
  if (rows == 1) return;
  // Rows of one sequence are tokens that follow each other; a row without a sequence counts for nothing; and the last of two rows with one place is kept.
  decoding together;
  for (int r = 0; r < rows; ++r) together.sequence.push_back(1), together.position.push_back(70 + r);
  compare(together, 100, "tokens of one sequence");
  std::swap(together.position.front(), together.position.back());
  if (!cuda_test::emulated()) compare(together, 101, "in another order");
  together.sequence[1] = -1;
  if (!cuda_test::emulated()) compare(together, 102, "an idle row");
  together.position[0] = together.position[std::size_t(rows - 1)];
  compare(together, 103, "two rows with the same place");
  if (cuda_test::emulated()) return;
  for (auto& p : together.position) ++p;
  compare(together, 104, "behind them");
}

}  // namespace halves_test
}  // namespace isotope::cuda
