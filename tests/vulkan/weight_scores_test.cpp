/// Which matmuls of f16 weights keep f32 activations, and the lines of the dispatch report about it.
#include "device.hpp"

#include <isotope/backend/vulkan.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>
#include <isotope/plan/report/dispatches.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace isotope::vulkan {
namespace weight_scores_test {

using f32 = target<backend::vulkan, precision::f32, kernels::native>;

/// y = x a^T b: K runs along the rows of `a` (64, 48), and across those of `b` (64, 40).
struct two_weights {
  template <Machine M> tensor<M> operator()(scope<M> s) const {
    const auto x = s.input("x", {32, 48}, dtype::f32);
    return matmul(matmul(x, transpose(s.param("a", {64, 48}))), s.param("b", {64, 40}));
  }
};
dynamic_plan planned(weight_storage how = weights::f16) { return *plan_inference<f32>(two_weights{}, 0, true, false, how); }
/// A weight with `cols` columns: of one sign, or with signs that alternate along an axis.
std::vector<float> weight(std::int64_t count, std::int64_t cols, int alternates) {
  std::vector<float> r;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto place = alternates == 0 ? i / cols : i % cols;
    r.push_back((alternates >= 0 && place % 2 == 1 ? -1.0f : 1.0f) * (0.5f + 0.001f * float(i % 10)));
  }
  return r;
}
struct no_constants : constant_store {
  std::uint64_t keep(std::span<const std::uint32_t>) override { return 4096; }
};
struct no_modules : shader_store {
  const shader* keep(std::string_view, std::vector<std::uint32_t>) override {
    static const std::uint32_t words[1] = {0};
    static const shader made{"made at run time", words, {}};
    return &made;
  }
};
std::vector<std::vector<std::string>> rows_of(const std::string& report) {
  std::vector<std::vector<std::string>> rows(1, std::vector<std::string>(1));
  for (const char c : report)
    if (c == '\n') rows.push_back({""});
    else if (c == '\t') rows.back().emplace_back();
    else rows.back().back() += c;
  return rows;
}
/// The dispatches that a described device would run.
struct recorded {
  no_constants const_pool;
  no_modules modules;
  std::vector<dispatch> all;
  recorded(const dynamic_plan& plan, const weight_scores& scores, const kernel_switches& switches) {
    device_limits f;
    f.shared_bytes = 49152;
    f.multiprocessors = 132;
    f.matrices = {{16, 16, 16, dtype::bf16, dtype::f32}, {16, 16, 16, dtype::f16, dtype::f32}};
    f.switches = switches;
    region_addresses base;
    for (std::size_t k = 0; k < base.at.size(); ++k) base.at[k] = (k + 1) << 32;
    base.scalars = 256;
    const kernel_set kernels{kernel_table<f32>, code_of<f32>()};
    all = record(plan, kernels, base, {}, f, phase_always, const_pool, modules, &scores);
  }
};
/// Kernel set, reason, matrices and the first digits of the oscillation, of the last dispatch of each matmul.
std::vector<std::string> products(const dynamic_plan& plan, const weight_scores& scores, const kernel_switches& switches) {
  const recorded made(plan, scores, switches);
  std::vector<std::string> r;
  std::string step;
  for (const auto& row : rows_of(dispatch_report(plan, launch_rows(made.all), "native", backend::vulkan::native_reason)))
    if (row.size() > 19 && row[1] == "matmul") {
      const std::string text = row[3] + "; " + row[4] + "; " + row[18] + "; " + row[19].substr(0, 4);
      if (row[0] == step) r.back() = text;
      else r.push_back(text);
      step = row[0];
    }
  return r;
}
weight_scores scored(const dynamic_plan& plan, int a, int b) {
  weight_scores s;
  s.add(plan);
  for (const auto& slot : plan.slots) s.put(slot, slot.path.view() == "a" ? weight(64 * 48, 48, a) : weight(64 * 40, 40, b), 0.35);
  return s;
}
const std::string units = "native; -; f16xf16->f32; ", wide = "portable; activations stay f32: ";
bool compiled() { return shaders::matmul_khr_f16_plain.there(); }

TEST(vulkan_weight_scores, gentle_weights_take_matrix_units_and_alternating_ones_do_not) {
  if (!compiled()) GTEST_SKIP() << "this build's shader compiler has no cooperative matrices";
  const auto plan = planned();
  using list = std::vector<std::string>;
  EXPECT_EQ(products(plan, {}, {}), (list{units + "-", units + "-"})) << "nothing is known before weights are written";
  EXPECT_EQ(products(plan, scored(plan, -1, -1), {}), (list{units + "0.00", units + "0.00"}));
  EXPECT_EQ(products(plan, scored(plan, 1, -1), {}), (list{wide + "the weights oscillate; -; 1.00", units + "0.00"}));
  EXPECT_EQ(products(plan, scored(plan, -1, 0), {}), (list{units + "0.00", wide + "the weights oscillate; -; 1.00"}))
      << "K is b's first axis";
  EXPECT_EQ(products(plan, scored(plan, 0, 1), {}), (list{units + "0.00", units + "0.00"}))
      << "signs that alternate along N cancel nothing";
}
TEST(vulkan_weight_scores, every_switch_changes_the_report_as_it_says) {
  if (!compiled()) GTEST_SKIP() << "this build's shader compiler has no cooperative matrices";
  const auto plan = planned();
  const auto both = scored(plan, 1, -1);
  const auto first = [&](const kernel_switches& s) { return products(plan, both, s).at(0); };
  EXPECT_EQ(first({.no_auto_wide = true}), units + "1.00");
  EXPECT_EQ(first({.oscillation_threshold = 1.5f}), units + "1.00");
  EXPECT_EQ(products(plan, both, {.force_wide = true}).at(1), wide + "asked for; -; 0.00");
  EXPECT_EQ(first({.no_matrix_units = true}), "portable; matrix units are switched off; -; 1.00");
  EXPECT_EQ(products(plan, both, {.no_f16_matrices = true}).at(1), "portable; matrix units are switched off for f16; -; 0.00");
  const auto bf16 = planned(weights::bf16);
  EXPECT_EQ(products(bf16, scored(bf16, 1, -1), {}).at(0), "portable; operands have different formats; -; -");
}
TEST(vulkan_weight_scores, tell_whether_some_product_changes_sides) {
  const auto plan = planned();
  weight_scores s;
  s.add(plan);
  const auto& a = plan.slots.at(0);
  ASSERT_EQ(a.path.view(), "a");
  EXPECT_FALSE(s.put(a, weight(64 * 48, 48, -1), 0.35)) << "a weight without a score counts as gentle";
  EXPECT_TRUE(s.put(a, weight(64 * 48, 48, 1), 0.35));
  EXPECT_FALSE(s.put(a, weight(64 * 48, 48, 1), 0.35));
  EXPECT_TRUE(s.put(a, weight(64 * 48, 48, -1), 0.35));
}

/// A matmul with one row, as in decoding.
struct decoding {
  template <Machine M> tensor<M> operator()(scope<M> s) const {
    return matmul(s.input("x", {1, 768}, dtype::f32), transpose(s.param("w", {3072, 768})));
  }
};
TEST(vulkan_weight_scores, products_of_few_rows_read_half_the_bytes) {
  const auto bytes = [](weight_storage how) {
    const auto plan = *plan_inference<f32>(decoding{}, 0, true, false, how);
    const recorded made(plan, {}, {});
    EXPECT_EQ(made.all.size(), 1u);
    EXPECT_TRUE(made.all.at(0).code->name.starts_with("matmul_rows"));
    std::int64_t n = 0;
    for (const range& x : made.all[0].reads) n += std::int64_t(x.end - x.first);
    return n - 768 * 4;
  };
  EXPECT_EQ(bytes(nullptr), 3072 * 768 * 4);
  EXPECT_EQ(bytes(weights::f16), 3072 * 768 * 2);
  EXPECT_EQ(bytes(weights::bf16), 3072 * 768 * 2);
}

// On a device: a session records its commands again if a weight's oscillation crosses the threshold, and results are right in both cases.
TEST(vulkan_weight_scores, sessions_record_again_when_weights_change_sides) {
  auto& d = vulkan_test::test_device();
  const auto device = vulkan::device<f32>::over(d.context, d.pipelines);
  auto s = device.load(planned());
  ASSERT_TRUE(s.ok()) << s.error().line();
  const bool matrices = device.limits().matrix(dtype::f16) != nullptr && compiled();
  for (const int alternates : {-1, 1, -1}) {
    const auto a = weight(64 * 48, 48, alternates), b = weight(64 * 40, 40, -1);
    ASSERT_TRUE(s->write(tensor_kind::parameter, 0, a).ok());
    ASSERT_TRUE(s->write(tensor_kind::parameter, 1, b).ok());
    auto x = s->input<float>("x");
    for (std::size_t i = 0; i < x->size(); ++i) (*x)[i] = 1 + 0.25f * float(i % 3);  // exact in f16
    s->run({}, phase_always);
    ASSERT_TRUE(s->status().ok()) << s->status().error().line();
    const auto all = s->dispatches(phase_always);
    const auto on_units = std::ranges::count_if(all, [](const dispatch& one) { return one.code->needs == "coopmat"; });
    EXPECT_EQ(on_units > 1, matrices && alternates < 0);
    EXPECT_EQ(on_units > 0, matrices);
    const auto y = s->output<float>("output");
    for (std::int64_t i = 0; i < 3; ++i) {
      double want = 0;
      for (std::int64_t h = 0; h < 64; ++h) {
        double sum = 0;
        for (std::int64_t k = 0; k < 48; ++k) sum += double((*x)[std::size_t(k)]) * double(float(float16(a[std::size_t(h * 48 + k)])));
        want += sum * double(float(float16(b[std::size_t(h * 40 + i)])));
      }
      // Matrix units need the result of the first matmul rounded to f16, by 2^-11; alternating weights cancel to nearly zero.
      EXPECT_NEAR(double((*y)[std::size_t(i)]), want, 0x1p-11 * std::max(std::fabs(want), 1.0) + 1e-3) << alternates;
    }
  }
}

}  // namespace weight_scores_test
}  // namespace isotope::vulkan
