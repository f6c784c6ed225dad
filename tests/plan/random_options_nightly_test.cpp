// labels: nightly
#include "random_options.hpp"

using namespace plan_test;

namespace random_options_nightly_test {

template <class T> struct random_options_nightly : testing::Test {};
TYPED_TEST_SUITE(random_options_nightly, every_target, target_name);

TYPED_TEST(random_options_nightly, give_the_bits_of_separate_steps_on_10000_models) {
  check_random_options<TypeParam>(20240612, affordable(10000));
}

}  // namespace random_options_nightly_test
