#include "outcome.hpp"
#include "property.hpp"
#include "random_model.hpp"

using namespace plan_test;
namespace recompute = isotope::recompute;

namespace recompute_test {

constexpr isotope::recompute_policy policies[] = {recompute::all, recompute::every(2), recompute::every(3), recompute::keep_matmuls};

template <class T> struct recomputation : testing::Test {};
TYPED_TEST_SUITE(recomputation, every_target, target_name);

// No tolerance: the same ops on the same bits, dropout masks by the stream of the op that is repeated.
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
// Kept per block and token, of width C: 16 C and more without recomputation, the block's input alone with it.
TEST(recompute_memory, falls_with_the_policy) {
  const auto none = temporaries(recompute::none), all = temporaries(recompute::all);
  const auto half = temporaries(recompute::every(2)), matmuls = temporaries(recompute::keep_matmuls);
  EXPECT_LT(all, none / 3);
  EXPECT_LT(all, half);
  EXPECT_LT(half, none);
  EXPECT_LT(all, matmuls);
  EXPECT_LT(matmuls, none);
}

TEST(recompute_memory, of_other_regions_stays) {
  const isotope::model::gpt_loss_of model{{4, 2, 16, 11, 6}, 2, 5};
  auto kept = planned<reference_f32>(model).totals.region,
       again = planned<reference_f32>(model, {.recompute = recompute::all}).totals.region;
  kept[std::size_t(isotope::value_kind::temp)] = again[std::size_t(isotope::value_kind::temp)] = 0;
  EXPECT_EQ(kept, again);
}

}  // namespace recompute_test
