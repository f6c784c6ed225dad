/// The effects of the switches of isotope::vulkan::diagnostics on a device, and in the dispatch report.
#include "device.hpp"

#include <isotope/backend/vulkan.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>
#include <isotope/plan/report/dispatches.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace isotope::vulkan {
namespace diagnostics_test {

using f32 = target<backend::vulkan, precision::f32, kernels::native>;
constexpr model::gpt tiny{1, 2, 16, 20, 8};

session<f32> loaded(const vulkan::options& o = vulkan_test::test_options()) {
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

TEST(vulkan_diagnostics, the_dispatch_report_has_a_line_for_every_dispatch_and_none_for_the_host) {
  const auto s = loaded();
  const auto all = s.dispatches();
  auto rows = rows_of(dispatch_report(s.plan(), launch_rows(all), "native", "no matrix units needed"));
  EXPECT_GT(std::erase_if(rows, [](const auto& row) { return row[0] == "# variant"; }), 0u);  // of products
  ASSERT_EQ(rows.size(), all.size() + 5);
  std::int64_t launches = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& row = rows[i + 1];
    const dispatch& d = all[i];
    ASSERT_EQ(row.size(), 20u);
    EXPECT_EQ(row[13], d.code->name);
    EXPECT_EQ(row[14], std::to_string(d.count.x) + "," + std::to_string(d.count.y) + "," + std::to_string(d.count.z));
    EXPECT_EQ(row[15], std::to_string(d.specialization.words()[0]));
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
  EXPECT_EQ(rows_of(dispatch_report(s.plan(), launch_rows(fewer), "native", "no matrix units needed"))[fewer.size() + 1].back(), "host 2");
}

TEST(vulkan_diagnostics, fall_throughs_are_the_reasons_of_the_report_with_their_counts) {
  const auto s = loaded();
  const auto all = s.dispatches();
  const auto rows = rows_of(dispatch_report(s.plan(), launch_rows(all), "native", "no matrix units needed"));
  std::int64_t with_reason = 0, counted = 0;
  for (const auto& row : rows) with_reason += row.size() == 20 && row[0] != "# step" && row[4] != "-" ? 1 : 0;
  for (const auto& f : fall_throughs(s.plan(), launch_rows(all), "native", "no matrix units needed")) {
    EXPECT_FALSE(f.reason.empty());
    counted += f.launches;
  }
  EXPECT_EQ(counted, with_reason);
}

TEST(vulkan_diagnostics, without_readback_nothing_comes_to_the_host_and_the_step_is_made_all_the_same) {
  auto o = vulkan_test::test_options();
  o.diagnose.no_readback = true;
  auto silent = loaded(o), plain = loaded();
  const data d;
  const batch b = d;
  for (int i = 1; i <= 3; ++i) {
    step_scalars x;
    x.optimizer_step = i;
    EXPECT_TRUE(std::isnan(silent.step(b, x).loss));
    EXPECT_FALSE(std::isnan(plain.step(b, x).loss));
  }
  EXPECT_TRUE(std::isnan(silent.evaluate(b)));
  EXPECT_EQ(silent.counters().bytes_out, 0);
  EXPECT_GT(plain.counters().bytes_out, 0);
  EXPECT_EQ(silent.dispatches().size() + 1, plain.dispatches().size());
  EXPECT_TRUE(silent.status().ok());
  std::vector<float> x(16), y(16);
  for (std::size_t k = 0; k < plain.parameters().size(); ++k) {
    x.resize(std::size_t(plain.parameters()[k].dims.count()));
    y.resize(x.size());
    ASSERT_TRUE(silent.read(tensor_kind::parameter, k, x).ok());
    ASSERT_TRUE(plain.read(tensor_kind::parameter, k, y).ok());
    EXPECT_EQ(x, y) << plain.parameters()[k].path.view();
  }
}

TEST(vulkan_diagnostics, switches_reach_the_kernels) {
  auto o = vulkan_test::test_options();
  o.diagnose.split_k = 3;
  o.diagnose.no_f16_matrices = true;
  const auto d = isotope_test::there(device<f32>::open(o));
  EXPECT_EQ(d->limits().switches.split_k, 3u);
  EXPECT_EQ(d->limits().matrix(dtype::f16), nullptr);
}

TEST(vulkan_diagnostics, f16_matrices_are_switched_off_apart_from_bf16_ones) {
  device_limits f;
  f.matrices = {{16, 16, 16, dtype::f16, dtype::f32}, {16, 16, 16, dtype::bf16, dtype::f32}};
  EXPECT_NE(f.matrix(dtype::f16), nullptr);
  f.switches.no_f16_matrices = true;
  EXPECT_EQ(f.matrix(dtype::f16), nullptr);
  EXPECT_NE(f.matrix(dtype::bf16), nullptr);
  f.switches.no_matrix_units = true;
  EXPECT_EQ(f.matrix(dtype::bf16), nullptr);
}

/// A constant store for dispatches that do not run.
struct no_constants : constant_store {
  std::uint64_t keep(std::span<const std::uint32_t>) override { return 4096; }
};
struct no_modules : shader_store {
  std::vector<std::unique_ptr<shader>> kept;
  const shader* keep(std::string_view, std::vector<std::uint32_t>) override {
    static const std::uint32_t words[1] = {0};
    kept.push_back(std::make_unique<shader>(shader{"made at run time", words, {}}));
    return kept.back().get();
  }
};
/// The report on a bf16 training step that is recorded for a described device.
std::string recorded_report(const kernel_switches& switches, const std::string& distrusted = {}) {
  using bf16 = target<backend::vulkan, precision::bf16, kernels::native>;
  static const dynamic_plan plan = *plan_training<bf16>(model::gpt_loss_of{{1, 2, 64, 256, 64}, 8, 64});
  device_limits f;
  f.shared_bytes = 49152;
  f.multiprocessors = 132;
  f.matrices = {{16, 16, 16, dtype::bf16, dtype::f32}, {16, 16, 16, dtype::f16, dtype::f32}};
  f.switches = switches;
  f.distrusted = distrusted;
  region_addresses base;
  for (std::size_t k = 0; k < base.at.size(); ++k) base.at[k] = (k + 1) << 32;
  base.scalars = 256;
  no_constants const_pool;
  no_modules modules;
  const kernel_set kernels{kernel_table<bf16>, code_of<bf16>()};
  const auto all = record(plan, kernels, base, {}, f, phase_first | phase_last, const_pool, modules);
  return dispatch_report(plan, launch_rows(all), "native", backend::vulkan::native_reason);
}
/// Kernel set and reason of every matmul in a report.
std::vector<std::string> products_of(const std::string& report) {
  std::vector<std::string> r;
  for (const auto& row : rows_of(report))
    if (row.size() > 8 && row[1] == "matmul") r.push_back(row[3] + ": " + row[4]);
  return r;
}

TEST(vulkan_diagnostics, every_switch_changes_the_report_as_it_says) {
  const auto plain = recorded_report({});
  const std::string wanted =
      shaders::matmul_khr_bf16_plain.there() ? "native: -" : "portable: the shader compiler of this build knows no such matrices";
  ASSERT_GT(products_of(plain).size(), 10u);
  EXPECT_GT(std::ranges::count(products_of(plain), wanted), 0) << plain;
  for (const auto& p : products_of(recorded_report({.no_matrix_units = true}))) EXPECT_EQ(p, "portable: matrix units are switched off");
  for (const auto& p : products_of(recorded_report({}, "the self-test says so"))) EXPECT_EQ(p, "portable: the self-test says so");
  EXPECT_EQ(recorded_report({.no_f16_matrices = true}), plain) << "bf16 programs do not use them";
  EXPECT_EQ(recorded_report({.split_k = 1}).find("matmul_reduce"), std::string::npos);
  EXPECT_NE(recorded_report({.split_k = 2}).find("matmul_reduce"), std::string::npos);
  const auto chosen = [](const std::string& report, const std::string& tile) {
    std::size_t of_tile = 0, all = 0;
    for (std::size_t at = 0; (at = report.find("# variant\t", at)) != report.npos; ++at) {
      const std::string line = report.substr(at, report.find('\n', at) - at);
      if (line.find(", slabs of ") == line.npos) continue;  // not of a product
      if (line.ends_with("\tchosen")) ++all, of_tile += line.find("\t" + tile) != line.npos ? 1u : 0u;
    }
    return std::pair(of_tile, all);
  };
  const std::string tile = "64 x 64";
  const auto asked = chosen(recorded_report({.variant = tile}), tile);
  EXPECT_GT(asked.second, 0u) << plain;
  EXPECT_EQ(asked.first, asked.second);
  EXPECT_LT(chosen(plain, tile).first, asked.first);
}

}  // namespace diagnostics_test
}  // namespace isotope::vulkan
