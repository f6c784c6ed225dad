#include "outcome.hpp"
#include "property.hpp"
#include "random_model.hpp"

using namespace plan_test;

namespace fusion_test {

template <class T> struct fusion : testing::Test {};
TYPED_TEST_SUITE(fusion, every_target, target_name);

// No tolerance: a fused body rounds each intermediate as the separate steps do.
TYPED_TEST(fusion, gives_the_bits_of_separate_steps_on_random_graphs) {
  check_property(20240601, affordable(300), 60, [] {
    const auto model = *random_models();
    const auto fused = planned<TypeParam>(model), separate = planned<TypeParam>(model, {.fuse = false});
    RC_ASSERT(difference(step<TypeParam>(fused), step<TypeParam>(separate)) == "");
  });
}

TYPED_TEST(fusion, gives_the_bits_of_separate_steps_on_gpt) {
  const isotope::model::gpt_loss_of model{{2, 2, 16, 11, 6, 0.1}, 2, 5};
  const auto fused = planned<TypeParam>(model), separate = planned<TypeParam>(model, {.fuse = false});
  EXPECT_LT(fused.steps.size(), separate.steps.size());
  EXPECT_EQ(difference(step<TypeParam>(fused), step<TypeParam>(separate)), "");
}

/// The gradient of the table is made by two: the one of the division, and the one of the embedding, which adds to it in place. What divides by the table
/// reads it before that.
struct table_twice {
  bool products;
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    namespace init = isotope::init;
    const isotope::shape dims{6, 8};
    const auto table = s.param("table", dims, init::normal(0.5));
    const auto divisor = shift(square(tanh(s.param("g", dims, init::normal(0.5)))), 1.0);
    const auto rows = embedding(table, s.input("ids", {5}, isotope::dtype::i32));
    auto y = table / divisor;
    if (products) y = matmul(y, s.param("w", {8, 4}, init::normal(0.3)));
    return cast(mean(square(y)) + mean(square(rows)), isotope::accum_of(s.machine->program()));
  }
};
TYPED_TEST(fusion, leaves_a_reader_before_what_overwrites_its_operand) {
  for (const bool products : {false, true}) {
    const table_twice model{products};
    const auto fused = planned<TypeParam>(model), separate = planned<TypeParam>(model, {.fuse = false});
    EXPECT_EQ(difference(step<TypeParam>(fused), step<TypeParam>(separate)), "") << products;
  }
}

TEST(fusion_check, tells_one_changed_bit) {
  outcome a;
  a.gradients["w"] = {1.0f, 0.0f};
  auto b = a;
  b.gradients["w"][1] = -0.0f;
  EXPECT_EQ(difference(a, a), "");
  EXPECT_EQ(difference(a, b), "gradients of w");
}

}  // namespace fusion_test
