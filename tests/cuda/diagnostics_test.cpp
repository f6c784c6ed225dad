/// The effects of the switches of isotope::cuda::diagnostics on a device, and in the dispatch report.
#include "device.hpp"

#include <isotope/backend/cuda.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>
#include <isotope/plan/report/dispatches.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace isotope::cuda {
namespace diagnostics_test {

using f32 = target<backend::cuda, precision::f32, kernels::native>;
constexpr model::gpt tiny{1, 2, 16, 20, 8};

session<f32> loaded(const cuda::options& o = cuda_test::test_options()) {
  auto d = isotope_test::there(device<f32>::open(o));
  auto s = d->load(*plan_training<f32>(model::gpt_loss_of{tiny, 2, 8}), *plan_inference<f32>(model::gpt_loss_of{tiny, 2, 8}));
  EXPECT_TRUE(s.ok()) << (s ? std::string() : s.error().line());
  s->initialize(3);
  return *std::move(s);
}
struct data {
  std::vector<std::int32_t> tokens, targets;
  data() {
    for (int i = 0; i < 16; ++i) tokens.push_back(i * 5 % 20), targets.push_back(i * 3 % 20);
  }
  operator batch() const { return {tokens, targets}; }
};
std::vector<std::vector<std::string>> rows_of(const std::string& report) {
  std::vector<std::vector<std::string>> rows(1, std::vector<std::string>(1));
  for (const char c : report)
    if (c == '\n') rows.push_back({""});
    else if (c == '\t') rows.back().emplace_back();
    else rows.back().back() += c;
  rows.pop_back();
  return rows;
}
std::vector<double> losses(session<f32>& s) {
  const data d;
  const batch b = d;
  std::vector<double> r;
  for (int i = 1; i <= 3; ++i) {
    step_scalars x;
    x.optimizer_step = i;
    x.learning_rate = 0.01f;
    r.push_back(s.step(b, x).loss);
  }
  EXPECT_TRUE(s.status().ok());
  return r;
}

TEST(cuda_diagnostics, the_dispatch_report_has_a_line_for_every_dispatch_and_none_for_the_host) {
  const auto s = loaded();
  const auto all = s.dispatches();
  auto rows = rows_of(dispatch_report(s.plan(), launch_rows(all), "native", "no tensor cores needed"));
  EXPECT_GT(std::erase_if(rows, [](const auto& row) { return row[0] == "# variant"; }), 0u);  // of products
  ASSERT_EQ(rows.size(), all.size() + 5);
  std::int64_t launches = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& row = rows[i + 1];
    const dispatch& d = all[i];
    ASSERT_EQ(row.size(), 20u);
    EXPECT_EQ(row[13], d.function);
    EXPECT_EQ(row[14], std::to_string(d.count.x) + "," + std::to_string(d.count.y) + "," + std::to_string(d.count.z));
    EXPECT_EQ(row[15], std::to_string(d.count.threads));
    if (d.step < 0) {
      EXPECT_EQ(row[0], "-");
      continue;
    }
    ++launches;
    EXPECT_EQ(row[0], std::to_string(d.step));
    EXPECT_EQ(row[1], s.plan().steps[std::size_t(d.step)].op->name);
    EXPECT_TRUE(row[3] == "native" || row[3] == "portable" || row[3] == "reference") << row[3];
    EXPECT_EQ(row[3] == "native", row[4] == "-") << "a fall-through has a reason, and nothing else has: " << row[1] << ' ' << row[4];
  }
  std::int64_t counted = 0;
  for (const auto& cell : rows[all.size() + 1])
    for (const char* set : {"native ", "portable ", "reference "})
      if (cell.starts_with(set)) counted += std::stoll(cell.substr(cell.find(' ')));
  EXPECT_EQ(counted, launches);
  EXPECT_EQ(rows[all.size() + 1].back(), "host 0");

  std::vector<dispatch> fewer;  // without the dispatches of steps 3 and 5
  for (const auto& d : all)
    if (d.step != 3 && d.step != 5) fewer.push_back(d);
  EXPECT_EQ(rows_of(dispatch_report(s.plan(), launch_rows(fewer), "native", "no tensor cores needed"))[fewer.size() + 1].back(), "host 2");
}
TEST(cuda_diagnostics, without_readback_nothing_comes_to_the_host_and_the_step_is_made_all_the_same) {
  auto o = cuda_test::test_options();
  o.diagnose.no_readback = true;
  auto silent = loaded(o), plain = loaded();
  for (const double loss : losses(silent)) EXPECT_TRUE(std::isnan(loss));
  for (const double loss : losses(plain)) EXPECT_FALSE(std::isnan(loss));
  EXPECT_EQ(silent.counters().bytes_out, 0);
  EXPECT_GT(plain.counters().bytes_out, 0);
  EXPECT_EQ(silent.dispatches().size() + 1, plain.dispatches().size());
  std::vector<float> x, y;
  for (std::size_t k = 0; k < plain.parameters().size(); ++k) {
    x.resize(std::size_t(plain.parameters()[k].dims.count()));
    y.resize(x.size());
    ASSERT_TRUE(silent.read(tensor_kind::parameter, k, x).ok());
    ASSERT_TRUE(plain.read(tensor_kind::parameter, k, y).ok());
    EXPECT_EQ(x, y) << plain.parameters()[k].path.view();
  }
}
TEST(cuda_diagnostics, switches_reach_the_kernels) {
  auto o = cuda_test::test_options();
  o.diagnose.split_k = 3;
  o.diagnose.no_matrix_units = true;
  o.diagnose.no_library = true;
  o.diagnose.launch_size = 64;
  o.diagnose.variant = "64 x 64";
  const auto d = isotope_test::there(device<f32>::open(o));
  EXPECT_EQ(d->limits().switches.split_k, 3u);
  EXPECT_FALSE(d->limits().blas);
  EXPECT_FALSE(d->limits().tensor_cores());
  EXPECT_FALSE(d->limits().hopper());
  EXPECT_EQ(d->launch_size(), 64);
  EXPECT_EQ(d->limits().switches.variant, "64 x 64");
}
TEST(cuda_diagnostics, blocks_of_any_size_give_the_same_bits) {
  auto plain = loaded();
  const auto want = losses(plain);
  const auto usual = plain.dispatches();
  for (const std::int32_t size : {1, 64, 1024}) {
    auto o = cuda_test::test_options();
    o.diagnose.launch_size = size;
    auto s = loaded(o);
    EXPECT_EQ(losses(s), want) << size;
    const auto all = s.dispatches();
    ASSERT_EQ(all.size(), usual.size());
    int changed = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].count.items, usual[i].count.items);
      if (all[i].count.items == 0) {
        EXPECT_EQ(all[i].count.threads, usual[i].count.threads) << "a block that cooperates keeps its size";
      } else {
        EXPECT_EQ(all[i].count.threads, std::uint32_t(size)) << all[i].function;
        ++changed;
      }
    }
    EXPECT_GT(changed, 3);
  }
}
TEST(cuda_diagnostics, a_profile_has_a_time_for_every_dispatch) {
  auto s = loaded();
  losses(s);
  const auto profile = s.profile({});
  ASSERT_TRUE(profile.ok()) << profile.error().line();
  EXPECT_GT(losses(s).back(), 0);
}

}  // namespace diagnostics_test
}  // namespace isotope::cuda
