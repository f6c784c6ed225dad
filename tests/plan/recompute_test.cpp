#include "outcome.hpp"
#include "property.hpp"
#include "random_model.hpp"

using namespace plan_test;
namespace recompute = isotope::recompute;

namespace recompute_test {

constexpr isotope::recompute_policy policies[] = {recompute::all, recompute::every(2), recompute::every(3), recompute::keep_matmuls,
                                                  recompute::cheap};

template <class T> struct recomputation : testing::Test {};
TYPED_TEST_SUITE(recomputation, every_target, target_name);

// There is no tolerance: the same ops run on the same bits, and a recomputed dropout uses the random stream of the original.
TYPED_TEST(recomputation, gives_the_bits_of_kept_activations_on_gpt_with_dropout) {
  const isotope::model::gpt_loss_of model{{4, 2, 16, 11, 6, 0.1}, 2, 5};
  const auto kept = step<TypeParam>(planned<TypeParam>(model));
  for (const auto& policy : policies) {
    const auto plan = planned<TypeParam>(model, {.recompute = policy});
    EXPECT_GT(plan.steps.size(), planned<TypeParam>(model).steps.size());
    EXPECT_EQ(difference(step<TypeParam>(plan), kept), "") << int(policy.which);
  }
}

TYPED_TEST(recomputation, gives_the_bits_of_kept_activations_on_random_graphs) {
  check_property(20240605, affordable(100), 40, [] {
    const auto model = *random_models();
    const auto kept = step<TypeParam>(planned<TypeParam>(model));
    for (const auto& policy : policies)
      RC_ASSERT(difference(step<TypeParam>(planned<TypeParam>(model, {.recompute = policy})), kept) == "");
  });
}

std::int64_t temporaries(const isotope::recompute_policy& policy) {
  const auto plan = planned<reference_f32>(isotope::model::gpt_loss_of{{8, 4, 64, 65, 64}, 4, 64}, {.recompute = policy});
  return plan.totals.region[std::size_t(isotope::value_kind::temp)];
}
// Per block and token of width C, 16 C numbers and more are kept without recomputation, and only the block's input with it.
TEST(recompute_memory, falls_with_the_policy) {
  const auto none = temporaries(recompute::none), all = temporaries(recompute::all);
  const auto half = temporaries(recompute::every(2)), matmuls = temporaries(recompute::keep_matmuls);
  EXPECT_LT(all, none / 3);
  EXPECT_LT(all, half);
  EXPECT_LT(half, none);
  EXPECT_LT(all, matmuls);
  EXPECT_LT(matmuls, none);
}
// Of a token, a block keeps the results of two norms and of a GELU of width 4 C less; while a block's gradients are computed, one of them is there again.
TEST(recompute_memory, falls_by_the_results_of_norms_and_activations_that_are_cheap) {
  const auto none = temporaries(recompute::none), cheap = temporaries(recompute::cheap);
  const std::int64_t C = 4 * 64 * 64 * 4;  // bytes of a tensor of width 64
  EXPECT_LE(cheap, none - (8 - 1) * 6 * C);
  EXPECT_GE(cheap, none - 8 * 6 * C);
}
TEST(recompute_cheap, repeats_no_product) {
  const auto count = [](const isotope::recompute_policy& policy, auto&& wanted) {
    const auto plan = planned<reference_f32>(isotope::model::gpt_loss_of{{3, 2, 16, 11, 6}, 2, 5}, {.recompute = policy, .fuse = false});
    int n = 0;
    for (const auto& s : plan.steps) n += wanted(s) ? 1 : 0;
    return n;
  };
  const auto products = [](const isotope::step& s) { return s.op->runs_gemms; };
  const auto norms = [](const isotope::step& s) { return s.op == &isotope::info<isotope::op::layer_norm>; };
  EXPECT_EQ(count(recompute::cheap, products), count(recompute::none, products));
  EXPECT_EQ(count(recompute::none, norms), 7);
  EXPECT_EQ(count(recompute::cheap, norms), 7 + 6) << "the last norm lies in no block";
}

TEST(recompute_memory, of_other_regions_stays) {
  const isotope::model::gpt_loss_of model{{4, 2, 16, 11, 6}, 2, 5};
  auto kept = planned<reference_f32>(model).totals.region,
       again = planned<reference_f32>(model, {.recompute = recompute::all}).totals.region;
  kept[std::size_t(isotope::value_kind::temp)] = again[std::size_t(isotope::value_kind::temp)] = 0;
  EXPECT_EQ(kept, again);
}

}  // namespace recompute_test
