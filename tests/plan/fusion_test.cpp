#include "outcome.hpp"
#include "property.hpp"
#include "random_model.hpp"
#include "read_gradient.hpp"

using namespace plan_test;

namespace fusion_test {

template <class T> struct fusion : testing::Test {};
TYPED_TEST_SUITE(fusion, every_target, target_name);

// There is no tolerance: a fused body rounds each intermediate result like separate steps.
TYPED_TEST(fusion, gives_the_bits_of_separate_steps_on_random_graphs) {
  check_property(20240601, affordable(300), 60, [] {
    const auto model = *random_models();
    const auto fused = planned<TypeParam>(model, {.join_sums = false}), separate = planned<TypeParam>(model, {.fuse = false});
    RC_ASSERT(difference(step<TypeParam>(fused), step<TypeParam>(separate)) == "");
  });
}

TYPED_TEST(fusion, gives_the_bits_of_separate_steps_on_gpt) {
  const isotope::model::gpt_loss_of model{{2, 2, 16, 11, 6, 0.1}, 2, 5};
  const auto fused = planned<TypeParam>(model, {.join_sums = false}), separate = planned<TypeParam>(model, {.fuse = false});
  EXPECT_LT(fused.steps.size(), separate.steps.size());
  EXPECT_EQ(difference(step<TypeParam>(fused), step<TypeParam>(separate)), "");
}

TEST(fusion_of_a_programs_op, leaves_a_reader_before_what_overwrites_its_operand) { EXPECT_EQ(difference_of_a_read_gradient(), ""); }

TEST(fusion_check, tells_one_changed_bit) {
  outcome a;
  a.gradients["w"] = {1.0f, 0.0f};
  auto b = a;
  b.gradients["w"][1] = -0.0f;
  EXPECT_EQ(difference(a, a), "");
  EXPECT_EQ(difference(a, b), "gradients of w");
}

}  // namespace fusion_test
