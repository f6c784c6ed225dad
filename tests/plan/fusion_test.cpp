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

/// Element-wise functions behind a product, among them those whose formulas no epilogue of a device knows.
struct functions_loss {
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    using namespace isotope;
    const auto y = matmul(s.input("x", {12, 8}), s.param("w", {8, 20}, init::normal(0.5)));
    const auto a = sin(y), b = erf(a) * rsqrt(square(a) + 0.5), c = maximum(b, minimum(a, y));
    const auto d = clamp(y, -0.25, 0.5) + abs(b) - sign(y) * floor(a * 3.0);
    const auto which = logical_or(logical_not(less(a, b)), logical_and(less(y, a), less(b, y)));
    return cast(mean(square(where(which, c, d))), accum_of(s.machine->program()));
  }
};
TYPED_TEST(fusion, gives_the_bits_of_separate_steps_and_the_gradients_of_f64_for_functions_behind_a_product) {
  const auto given = step<TypeParam>(planned<TypeParam>(functions_loss{}));
  EXPECT_EQ(difference(given, step<TypeParam>(planned<TypeParam>(functions_loss{}, {.fuse = false}))), "");
  const auto wanted = step<reference_f64>(planned<reference_f64>(functions_loss{}));
  if (TypeParam::precision::type == isotope::dtype::f32) {  // in bf16 numbers beside a step of floor or sign may round to its other side
    EXPECT_NEAR(given.loss, wanted.loss, 1e-5 * wanted.loss);
    for (std::size_t i = 0; i < wanted.gradients.at("w").size(); ++i)
      EXPECT_NEAR(given.gradients.at("w")[i], wanted.gradients.at("w")[i], 1e-5) << i;
  }
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
