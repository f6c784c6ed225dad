#include "random_options.hpp"

using namespace plan_test;

namespace random_options_test {

template <class T> struct random_options : testing::Test {};
TYPED_TEST_SUITE(random_options, every_target, target_name);

// There is no tolerance: options determine when and where something is computed, but not what.
TYPED_TEST(random_options, give_the_bits_of_separate_steps) { check_random_options<TypeParam>(20240611, affordable(500)); }

TEST(random_options_check, tells_a_parameter_that_differs_and_leaves_out_gradients_that_one_side_lacks) {
  outcome a, b;
  a.parameters["w"] = b.parameters["w"] = {1.0f};
  a.gradients["w"] = {2.0f};
  a.norm = 2;
  EXPECT_EQ(difference_kept(a, b), "");
  b.parameters["w"] = {1.5f};
  EXPECT_EQ(difference_kept(a, b), "parameters of w");
}

}  // namespace random_options_test
