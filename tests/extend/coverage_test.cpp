// Without one kernel exactly the plans that need it fail, and the message names it: tried with every kernel of the cpu backend.
#include <isotope/backend/cpu.hpp>
#include <isotope/isotope.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace coverage_test {
namespace iso = isotope;
using here = iso::target<iso::backend::cpu, iso::precision::f32, iso::kernels::reference>;
using table = std::vector<iso::kernel_info>;

std::set<const iso::op_info*> needed(const iso::plan_view& p) {
  std::set<const iso::op_info*> r;
  for (const auto& s : p.steps) r.insert(s.op);
  for (const auto& m : p.micro_ops) r.insert(m.op);
  return r;
}
table without(const iso::op_info* op) {
  table r;
  for (const auto& k : iso::kernel_table<here>)
    if (k.op != op) r.push_back(k);
  return r;
}

TEST(coverage, without_one_kernel_the_plans_that_need_it_fail_and_no_other) {
  const auto gpt = iso::plan_training<here>(iso::model::gpt_loss_of{{1, 2, 8, 11, 8, 0.1}, 1, 8});
  const auto mlp = iso::plan_inference<here>(iso::model::mlp_logits_of{{}, 2});
  ASSERT_TRUE(gpt && mlp);
  for (const auto& kernel : iso::kernel_table<here>)
    for (const auto* plan : {&*gpt, &*mlp}) {
      const auto message = iso::missing_kernel(*plan, "toy", without(kernel.op), {});
      if (needed(*plan).count(kernel.op) == 0) {
        EXPECT_TRUE(message.empty()) << message.view();
      } else {
        EXPECT_NE(message.view().find("toy has no f32 kernel for " + std::string(kernel.op->name) + ':'), std::string::npos)
            << message.view();
      }
    }
}

TEST(coverage, some_kernels_are_needed_and_some_are_not) {
  const auto gpt = iso::plan_training<here>(iso::model::gpt_loss_of{{1, 2, 8, 11, 8, 0.1}, 1, 8});
  ASSERT_TRUE(gpt);
  EXPECT_GE(needed(*gpt).size(), 10u);
  EXPECT_LT(needed(*gpt).size(), iso::kernel_table<here>.size());
}
}  // namespace coverage_test
