#include "exposed.hpp"

#include <isotope/op/all.hpp>

#include <limits>

using namespace plan_test;

namespace non_finite_test {

/// The sum of |x (w + b)| by a square root: at x = 0 the loss is 0 and its gradient is 0 times infinity.
struct kinked {
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    using namespace isotope;
    const auto x = s.input("x", {3, 4});
    const auto y = x * (s.param("weight", {3, 4}, init::normal(1)) + s.param("bias", {4}, init::zeros));
    return cast(sum(sqrt(square(y))), accum_of(s.machine->program()));
  }
};

template <class T> struct non_finite : testing::Test {
  using E = typename T::precision::storage;
  session_of<T> s = loaded<T>(planned<T>(kinked{}));

  void fill(float v) {
    auto x = *s.template input<E>("x");
    std::fill(x.begin(), x.end(), E(v));
  }
  std::vector<tensors> everything() {
    using isotope::tensor_kind;
    return {read_all(s, tensor_kind::parameter), read_all(s, tensor_kind::moment1), read_all(s, tensor_kind::moment2)};
  }
  void expect_skipped() {
    const auto before = everything();
    const auto report = s.run(scalars());
    EXPECT_TRUE(report.skipped);
    EXPECT_EQ(everything(), before);
  }
};
TYPED_TEST_SUITE(non_finite, every_target, target_name);

TYPED_TEST(non_finite, losses_skip_the_step_and_leave_parameters_and_moments) {
  EXPECT_FALSE(this->s.run(scalars()).skipped);
  for (const float v : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    this->fill(v);
    this->expect_skipped();
  }
}

TYPED_TEST(non_finite, gradients_of_a_finite_loss_skip_the_step_as_well) {
  EXPECT_FALSE(this->s.run(scalars()).skipped);
  this->fill(0);
  const auto report = this->s.run(scalars());
  EXPECT_EQ(report.loss, 0);
  EXPECT_TRUE(!std::isfinite(report.grad_norm));
  this->expect_skipped();
}

TYPED_TEST(non_finite, steps_leave_no_trace_in_the_next_one) {
  auto x = scalars();
  auto clean = loaded<TypeParam>(planned<TypeParam>(kinked{}));
  clean.run(x);
  const auto want = step(clean, x);
  this->s.run(x);
  this->fill(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(this->s.run(x).skipped);
  fill_inputs(this->s);
  EXPECT_EQ(difference(step(this->s, x), want), "");
}

}  // namespace non_finite_test
