// A backend that is defined outside the library trains a model.
#include "toy_backend.hpp"

#include <gtest/gtest.h>

#include "../backend_suite.hpp"

namespace backend_test {
namespace iso = isotope;

struct xor_loss {
  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const {
    const auto h = tanh(iso::nn::linear(s / "hidden", s.input("x", {4, 2}), 8, 1.0));  // (4, 8)
    return mean(square(iso::nn::linear(s / "out", h, 1, 0.5) - s.input("y", {4, 1})));
  }
};
using toy_target = iso::target<toy::backend, iso::precision::f32, iso::kernels::reference>;
using step = iso::training<xor_loss, toy_target, iso::training_options{.optimizer = iso::optimizer_kind::sgd}>;

TEST(toy_backend, trains_exclusive_or) {
  auto device = iso::device<toy_target>::open();
  ASSERT_TRUE(device);
  auto session = device->load<step>();
  ASSERT_TRUE(session) << session.error().line();
  session->initialize(1);
  const float x[] = {0, 0, 0, 1, 1, 0, 1, 1}, y[] = {0, 1, 1, 0};
  std::copy(std::begin(x), std::end(x), session->input<float>("x")->begin());
  std::copy(std::begin(y), std::end(y), session->input<float>("y")->begin());
  iso::step_scalars scalars;
  scalars.learning_rate = 0.1f;
  scalars.momentum = 0.9f;
  const double before = session->run(scalars).loss;
  double loss = before;
  for (int i = 0; i < 500; ++i) loss = session->run(scalars).loss;
  EXPECT_GT(before, 0.1);  // the constant answer y = 1/2 has a loss of 0.25
  EXPECT_LT(loss, 0.01);   // then each of the four answers is wrong by less than sqrt(4 * 0.01) = 0.2, so it rounds to the right bit
}

struct relu_loss {
  template <iso::Machine M> constexpr iso::tensor<M> operator()(iso::scope<M> s) const { return mean(relu(s.param("w", {4}))); }
};
TEST(toy_backend, refuses_a_model_whose_kernels_it_lacks) {
  const auto plan = iso::plan_training<toy_target>(relu_loss{});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, iso::errc::invalid_model);
  EXPECT_EQ(plan.error().line(), "toy has no f32 kernel for relu: use another -DBACKEND or add relu.hpp to kernels/toy/reference");
}
}  // namespace backend_test
namespace isotope_test {
INSTANTIATE_TYPED_TEST_SUITE_P(toy, backend_suite, backend_test::toy_target);
}  // namespace isotope_test
