#include "outcome.hpp"

#include <isotope/model/all.hpp>

#include <cmath>

using namespace plan_test;

namespace training_test {

constexpr isotope::model::gpt small{1, 2, 16, 12, 8};
constexpr isotope::model::gpt_loss_of model{small, 4, 8};

/// Sequences in which each token determines the next, t -> 5 t + 1 mod 12, from four starts.
template <class Session> void fill_with_a_rule(Session& s) {
  const auto tokens = *s.template input<std::int32_t>("tokens"), targets = *s.template input<std::int32_t>("targets");
  for (std::size_t row = 0; row < 4; ++row) {
    auto t = std::int32_t(3 * row + 1);
    for (std::size_t i = 0; i < 8; ++i) {
      tokens[row * 8 + i] = t;
      t = (5 * t + 1) % small.vocab;
      targets[row * 8 + i] = t;
    }
  }
}
isotope::step_scalars at(int step) {
  isotope::step_scalars x;
  x.learning_rate = 0.01f;
  x.clip_norm = 1;
  x.optimizer_step = step;
  return x;
}

template <class T> struct training : testing::Test {
  session_of<T> s = loaded<T>(planned<T>(model));
};
TYPED_TEST_SUITE(training, every_target, target_name);

// Logits start near zero, so all classes have about the same probability.
TYPED_TEST(training, starts_at_the_loss_of_a_guess) {
  const double loss = this->s.run(at(1)).loss;
  EXPECT_TRUE(std::fabs(loss - std::log(double(small.vocab))) <= 0.15) << loss;
}

TYPED_TEST(training, halves_the_loss_of_a_simple_rule_within_100_steps_and_then_learns_it_by_heart) {
  fill_with_a_rule(this->s);
  const double first = this->s.run(at(1)).loss;
  double loss = first;
  for (int step = 2; step <= 100; ++step) loss = this->s.run(at(step)).loss;
  EXPECT_TRUE(loss <= first / 2) << first << " to " << loss;
  for (int step = 101; step <= 300; ++step) loss = this->s.run(at(step)).loss;
  EXPECT_TRUE(loss < 0.01) << loss;
}

TYPED_TEST(training, gives_every_tensor_a_gradient_from_the_second_step_on) {
  this->s.run(at(1));
  this->s.run(at(2));
  for (const auto& [path, g] : read_all(this->s, isotope::tensor_kind::gradient)) {
    double sum = 0;
    for (float x : g) sum += std::fabs(double(x));
    EXPECT_TRUE(sum > 0) << path;
  }
}

TYPED_TEST(training, gives_the_same_bits_again) {
  auto other = loaded<TypeParam>(planned<TypeParam>(model));
  for (int i = 1; i <= 5; ++i) {
    this->s.run(at(i));
    other.run(at(i));
  }
  EXPECT_EQ(difference(step(this->s, at(6)), step(other, at(6))), "");
}

}  // namespace training_test
