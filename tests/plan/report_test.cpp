// Reports on plans. The expected texts hold for every backend that runs only reference kernels.
#include <isotope/backend/cpu.hpp>
#include <isotope/model/all.hpp>
#include <isotope/plan/dynamic.hpp>
#include <isotope/plan/report/dispatches.hpp>
#include <isotope/plan/report/fusion.hpp>
#include <isotope/plan/report/steps.hpp>
#include <isotope/plan/report/trace.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace iso = isotope;

namespace report_test {

using target = iso::target<iso::backend::cpu, iso::precision::f32, iso::kernels::reference>;
using fast = iso::target<iso::backend::cpu, iso::precision::f32, iso::kernels::native>;
constexpr iso::model::gpt size{1, 2, 16, 12, 8};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> r;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) r.push_back(text.substr(at, text.find('\n', at) - at));
  return r;
}
std::vector<std::string> columns_of(const std::string& line) {
  std::vector<std::string> r(1);
  for (const char c : line)
    if (c == '\t') r.emplace_back();
    else r.back() += c;
  return r;
}
/// The first `count` columns of a line, separated by blanks.
std::string first_columns(const std::string& line, std::size_t count) {
  std::string r;
  const auto all = columns_of(line);
  for (std::size_t i = 0; i < std::min(count, all.size()); ++i) r += (i == 0 ? "" : " ") + all[i];
  return r;
}
iso::dynamic_plan training_plan(const iso::training_options& o = {}) {
  return *iso::plan_training<target>(iso::model::gpt_loss_of{size, 2, 4}, o);
}

TEST(dispatch_report, of_a_transformer_layer_names_op_body_kernels_reason_and_shape_of_every_launch) {
  const auto plan = *iso::plan_inference<target>(iso::model::gpt_logits_of{size, 2, 4});
  const std::vector<std::string> golden = {
      "0 embedding - reference - - [2,4,16] f32",    "1 elementwise add reference - - [2,4,16] f32",
      "2 layer_norm - reference - - [2,4,16] f32",   "3 matmul add reference - - [2,4,48] f32",
      "4 attention - reference - - [2,4,16] f32",    "5 matmul add+add reference - - [2,4,16] f32",
      "6 layer_norm - reference - - [2,4,16] f32",   "7 matmul add+gelu_tanh reference - - [2,4,64] f32",
      "8 matmul add+add reference - - [2,4,16] f32", "9 layer_norm - reference - - [2,4,16] f32",
      "10 matmul - reference - - [2,4,12] f32"};
  std::vector<std::string> got, totals;
  for (const auto& line : lines_of(iso::dispatch_report(plan, iso::planned_rows(plan, iso::kernel_table<target>), "reference", "")))
    line.starts_with('#') ? totals.push_back(line) : got.push_back(first_columns(line, 8));
  EXPECT_EQ(got, golden);
  ASSERT_GE(totals.size(), 2u);
  EXPECT_EQ(totals[1], "# launches\treference 11\tcommon 0\thost 0");
}

TEST(dispatch_report, counts_the_steps_that_no_kernel_carries_out) {
  auto plan = *iso::plan_inference<target>(iso::model::gpt_logits_of{size, 2, 4});
  for (const std::size_t i : {1u, 4u}) plan.steps[i].kernel = -1;
  const auto report = iso::dispatch_report(plan, iso::planned_rows(plan, iso::kernel_table<target>), "reference", "");
  EXPECT_NE(report.find("# launches\treference 9\tcommon 0\thost 2\n"), std::string::npos) << report;
}

TEST(dispatch_report, gives_the_reason_of_every_fall_through) {
  const auto plan = *iso::plan_training<fast>(iso::model::gpt_loss_of{size, 2, 4});
  const auto report = lines_of(iso::dispatch_report(plan, iso::planned_rows(plan, iso::kernel_table<fast>), "native", "there are none"));
  std::set<std::string> reasons;
  for (const auto& line : report)
    if (!line.starts_with('#')) reasons.insert(columns_of(line)[3] + ": " + columns_of(line)[4]);
  for (const auto& r : reasons)
    EXPECT_TRUE(r == "native: -" || r == "portable: there are none" || r == "reference: no portable kernel") << r;
  EXPECT_TRUE(reasons.contains("portable: there are none"));
}

TEST(step_list, has_every_step_with_the_arena_offset_of_every_operand) {
  for (const bool accumulate : {false, true}) {
    const auto plan = training_plan({.accumulate = accumulate});
    const iso::plan_view p = plan;
    std::size_t steps = 0, operands = 0;
    std::vector<std::int64_t> start;
    for (const auto& line : lines_of(iso::step_list(p))) {
      const auto c = columns_of(line);
      if (c[0] == "region") start.push_back(std::stoll(c[2]));
      if (c[0] == "step") {
        EXPECT_EQ(c[1], std::to_string(steps)) << line;
        EXPECT_EQ(c[2], p.steps[steps++].op->name) << line;
      }
      if (c[0] != "in" && c[0] != "out") continue;
      const auto& o = p.operands[operands++];
      ASSERT_EQ(c.size(), 8u) << line;
      EXPECT_EQ(std::stoll(c[6]), start[std::size_t(o.region)] + o.at) << line;
      EXPECT_EQ(std::stoll(c[7]), o.bytes) << line;
      EXPECT_LE(std::stoll(c[6]) + o.bytes, p.totals.bytes) << line;
    }
    EXPECT_EQ(start.size(), std::size_t(iso::value_kinds));
    EXPECT_EQ(steps, p.steps.size());
    EXPECT_EQ(operands, p.operands.size());
  }
}

TEST(passes, follow_one_another_and_split_at_the_loss_and_at_the_norm) {
  for (const auto& o : {iso::training_options{}, iso::training_options{.accumulate = true},
                        iso::training_options{.recompute = iso::recompute::all}, iso::training_options{.clip = iso::clipping::value}}) {
    const auto plan = training_plan(o);
    const auto parts = iso::passes_of(plan);
    ASSERT_EQ(parts.size(), plan.steps.size());
    EXPECT_TRUE(std::is_sorted(parts.begin(), parts.end()));
    const auto first = [&](iso::pass p) { return std::size_t(std::find(parts.begin(), parts.end(), p) - parts.begin()); };
    const auto backward = first(iso::pass::backward), optimizer = first(iso::pass::optimizer);
    ASSERT_LT(optimizer, plan.steps.size());
    EXPECT_EQ(plan.steps[backward - 1].op->name, "cross_entropy");
    EXPECT_TRUE(plan.steps[optimizer].op->name == "global_norm" || plan.steps[optimizer].op->name == "clip_value");
    EXPECT_EQ(plan.steps.back().op->name, "adamw");
  }
}

TEST(passes, of_a_forward_plan_are_forward) {
  const auto plan = *iso::plan_inference<target>(iso::model::gpt_logits_of{size, 2, 4});
  for (const auto p : iso::passes_of(plan)) EXPECT_EQ(p, iso::pass::forward);
}

TEST(trace_text, defines_every_value_before_it_is_used) {
  const auto g = iso::traced_training<target>(iso::model::gpt_loss_of{size, 2, 4}, {.accumulate = true});
  const std::string text = iso::trace_text(g);
  std::set<std::string> defined;
  std::size_t nodes = 0, parameters = 0;
  for (const auto& line : lines_of(text)) {
    const auto names = [](std::string_view from) {
      std::set<std::string> r;
      for (std::size_t at = from.find('%'); at != from.npos; at = from.find('%', at + 1)) {
        std::size_t end = at + 1;
        while (end < from.size() && from[end] >= '0' && from[end] <= '9') ++end;
        r.emplace(from.substr(at, end - at));
      }
      return r;
    };
    const auto equals = line.find(" = ");
    if (line.starts_with("input ") || line.starts_with("parameter ")) {
      parameters += line.starts_with("p") ? 1 : 0;
      defined.insert(line.substr(line.find('%'), line.find(" [") - line.find('%')));
    } else if (line.starts_with('%')) {
      ++nodes;
      const auto open = line.find('(', equals);
      for (const auto& used : names(std::string_view(line).substr(open, line.find(')', open) - open)))
        EXPECT_TRUE(defined.contains(used) || line.find("accumulate(") != line.npos || line.find("global_norm(") != line.npos ||
                    line.find("adamw(") != line.npos)  // these read whole regions and sums of earlier micro-batches
            << used << " in " << line;
      defined.merge(names(std::string_view(line).substr(0, equals)));
    }
  }
  EXPECT_EQ(parameters, g.params.size());
  EXPECT_EQ(nodes, std::size_t(std::count_if(g.nodes.begin(), g.nodes.end(), [](const auto& n) { return !n.dead; })));
  for (const char* part : {"h.0.attn.c_attn.weight", "$1 = gelu_tanh($0)", "view of", "output ", "block 0", ", phases last", "accumulates"})
    EXPECT_NE(text.find(part), text.npos) << part;
}

TEST(fusion_report, says_what_joined_what_and_why_the_rest_did_not) {
  iso::model::gpt with_dropout = size;
  with_dropout.dropout = 0.1;
  const auto g = iso::traced_training<target>(iso::model::gpt_loss_of{with_dropout, 2, 4});
  const auto report = lines_of(iso::fusion_report(g, {.bodies = true}));
  const auto has = [&](std::string_view line) { return std::find(report.begin(), report.end(), line) != report.end(); };
  EXPECT_EQ(report[0], "# 9 element-wise ops: 5 bodies fused into products, 3 steps of their own");
  EXPECT_TRUE(has("10\tadd+gelu_tanh\tmatmul\t-\t-\t-"));
  EXPECT_TRUE(has("1\tadd\t-\t0\tembedding\tcomes from a kernel that takes no fused body"));
  EXPECT_TRUE(has("13\tadd\t-\t8\tadd\tis read by a step in between"));
}

TEST(fusion_report, a_transformer_is_fused_as_far_as_it_can_be_and_one_without_fusion_is_not) {
  for (const double dropout : {0.0, 0.1}) {
    iso::model::gpt with_dropout = size;
    with_dropout.dropout = dropout;
    for (const bool bodies : {true, false}) {
      iso::trace g = iso::traced_training<target>(iso::model::gpt_loss_of{with_dropout, 2, 4}, {.fuse = false});
      EXPECT_FALSE(iso::is_fused(g, {.bodies = bodies}));
    }
    EXPECT_TRUE(iso::is_fused(iso::traced_training<target>(iso::model::gpt_loss_of{with_dropout, 2, 4}), {.bodies = true}));
  }
}

/// The forward pass of a GPT-2 block consists of two norms, attention and four matmuls, into which bias, GELU and both residual sums are fused.
TEST(fusion_report, a_block_of_gpt_is_seven_steps_forward) {
  const auto steps = [](int layers) {
    iso::model::gpt g = size;
    g.layers = layers;
    const auto plan = iso::plan_inference<target>(iso::model::gpt_logits_of{g, 2, 4});
    EXPECT_TRUE(plan.ok());
    return plan->steps.size();
  };
  EXPECT_EQ(steps(3) - steps(2), 7u);
  EXPECT_EQ(steps(2) - steps(1), 7u);
}

struct chain {
  int length = 20;
  bool twice = false;  // whether the first result is also read through a transposed view
  template <iso::Machine M> iso::tensor<M> operator()(iso::scope<M> s) const {
    auto x = s.input("x", {4, 4});
    const auto first = tanh(x);
    auto y = first;
    for (int i = 1; i < length; ++i) y = tanh(y);
    return twice ? y + transpose(first) : y;
  }
};

TEST(fusion_report, names_the_limit_that_a_long_chain_meets) {
  const auto g = iso::traced_inference<target>(chain{});
  const std::string report = iso::fusion_report(g, {});
  EXPECT_NE(report.find("would make a longer body than a step has"), report.npos) << report;
}

TEST(fusion_report, names_the_view_that_keeps_a_producer_apart) {
  const auto g = iso::traced_inference<target>(chain{2, true});
  const std::string report = iso::fusion_report(g, {});
  EXPECT_NE(report.find("is read through a view"), report.npos) << report;
}

TEST(fusion_report, without_fusion_every_pair_could_join) {
  const auto g = iso::traced_inference<target>(chain{3}, false);
  const auto report = lines_of(iso::fusion_report(g, {}));
  EXPECT_EQ(report[0], "# 3 element-wise ops: 0 bodies fused into products, 3 steps of their own");
  EXPECT_EQ(report[2], "0\ttanh\t-\t-\t-\treads parameters and inputs alone");
  EXPECT_EQ(report[3], "1\ttanh\t-\t0\ttanh\tcould join");
}

TEST(common_lowering, of_a_forward_plan_has_no_op_that_could_be_decomposed) {
  const auto g = iso::traced_inference<target>(iso::model::gpt_logits_of{size, 2, 4}, true, true);
  for (const auto& n : g.nodes) EXPECT_TRUE(n.dead || n.rules->decompose == nullptr) << n.op->name;
}

}  // namespace report_test
