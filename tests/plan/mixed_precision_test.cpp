#include "exposed.hpp"

#include <isotope/model/all.hpp>
#include <isotope/op/all.hpp>

using namespace plan_test;

namespace mixed_precision_test {

struct constant_slope {
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    using namespace isotope;
    return sum(cast(s.param("w", {4}, init::ones), dtype::f32));
  }
};
using mixed_targets = ::testing::Types<reference_bf16, portable_bf16>;
template <class T> struct master_weights : testing::Test {};
TYPED_TEST_SUITE(master_weights, mixed_targets, target_name);

// 10,000 steps of 1e-5 lead from 1 to 0.9. Each step is rounded by at most 2^-25 in f32, together 3e-4. Without master weights, bf16 would stay at 1, where
// its spacing is 2^-8.
TYPED_TEST(master_weights, keep_updates_that_bf16_would_lose) {
  static_assert(isotope::bfloat16(1.0f - 1e-5f) == isotope::bfloat16(1.0f));
  auto s = loaded<TypeParam>(exposed<TypeParam>(planned<TypeParam>(constant_slope{}, {.optimizer = isotope::optimizer_kind::sgd})));
  isotope::step_scalars x;
  x.learning_rate = 1e-5f;
  for (int i = 0; i < 10000; ++i) s.run(x);
  const auto master = read_all(s, isotope::tensor_kind::parameter).at("w");
  const auto shadow = values<isotope::bfloat16>(s, "param", "w");
  for (std::size_t i = 0; i < master.size(); ++i) {
    EXPECT_TRUE(std::fabs(master[i] - 0.9f) <= 3e-4f) << master[i];
    EXPECT_EQ(shadow[i].bits, isotope::bfloat16(master[i]).bits);
  }
}

TYPED_TEST(master_weights, are_what_the_working_copy_is_rounded_from_after_every_step) {
  auto s = loaded<TypeParam>(exposed<TypeParam>(planned<TypeParam>(isotope::model::gpt_loss_of{{1, 2, 16, 11, 6}, 2, 5})));
  for (int step = 0; step < 5; ++step) {
    for (const auto& [path, master] : read_all(s, isotope::tensor_kind::parameter)) {
      const auto shadow = values<isotope::bfloat16>(s, "param", path);
      for (std::size_t i = 0; i < master.size(); ++i) ASSERT_EQ(shadow[i].bits, isotope::bfloat16(master[i]).bits) << path;
    }
    s.run(scalars());
  }
}

/// A loss in the program's precision.
struct own_precision {
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    return sum(s.param("w", {4}, isotope::init::ones));
  }
};
TYPED_TEST(master_weights, losses_in_bf16_are_reported_as_their_number) {
  EXPECT_EQ(step<TypeParam>(planned<TypeParam>(own_precision{})).loss, 4);
}

}  // namespace mixed_precision_test
