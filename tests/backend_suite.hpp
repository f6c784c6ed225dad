#pragma once
/// Typed tests that every backend must pass with small models. A backend outside the library runs them in three lines:
///
///   #include "backend_suite.hpp"
///   #include "my_backend.hpp"
///   INSTANTIATE_TYPED_TEST_SUITE_P(mine, backend_suite, my_target);
///
/// They need the ops matmul of two matrices, tanh, square, add, sub, mul, scale, sum, mean, fill, their gradients, and sgd, and a session with initialize,
/// input, run, parameters and read.
#include <gtest/gtest.h>

#include <isotope/backend/cpu.hpp>
#include <isotope/eager/eager.hpp>
#include <isotope/isotope.hpp>
#include <isotope/plan/dynamic.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device_there.hpp"

namespace isotope_test {

/// Two residual blocks between two linear layers. The loss is the mean of (y - target)^2.
struct two_blocks {
  static constexpr int rows = 8, in = 4, width = 16, out = 2;
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    namespace nn = isotope::nn;
    const auto type = s.machine->program();
    auto h = tanh(nn::linear(s / "in", s.input("x", {rows, in}, type), width, 0.5));
    for (int l = 0; l < 2; ++l)
      h = nn::block(s / "h" / l, h,
                    [](isotope::scope<M> b, isotope::tensor<M> y) { return y + tanh(nn::linear(b / "fc", y, width, 0.25)); });
    return mean(square(nn::linear(s / "out", h, out, 0.25) - s.input("target", {rows, out}, type)));
  }
};
/// A multilayer perceptron of two layers, with the loss of `two_blocks`.
struct two_layers {
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    namespace nn = isotope::nn;
    using sizes = two_blocks;
    const auto type = s.machine->program();
    const auto h = tanh(nn::linear(s / "fc", s.input("x", {sizes::rows, sizes::in}, type), sizes::width, 0.5));
    return mean(square(nn::linear(s / "out", h, sizes::out, 0.25) - s.input("target", {sizes::rows, sizes::out}, type)));
  }
};
/// Element i of an input: a smooth function in [-1, 1], different for each `turn`.
inline double element(std::string_view label, std::size_t i, double turn) {
  return std::sin(double(i) * (label == "x" ? 1.7 : 0.9) + turn);
}
template <class E, class Put> void fill_inputs(double turn, const Put& put) {
  for (const auto& [label, count] :
       {std::pair{"x", two_blocks::rows * two_blocks::in}, std::pair{"target", two_blocks::rows * two_blocks::out}}) {
    std::vector<E> values;
    for (std::size_t i = 0; i < std::size_t(count); ++i) values.push_back(E(float(element(label, i, turn))));
    put(label, values);
  }
}

using named_tensors = std::map<std::string, std::vector<float>>;
struct trained {
  std::vector<double> losses;
  named_tensors parameters, gradients;
};

template <class T> class backend_suite : public testing::Test {
 public:
  using storage = typename T::precision::storage;
  static constexpr bool wide = sizeof(storage) >= 4;

  /// Runs steps of one program from initialisation on, and returns losses and parameters.
  template <class Model = two_blocks>
  static trained train(isotope::training_options o, int steps, std::uint64_t seed = 3, double turn = 0) {
    o.optimizer = isotope::optimizer_kind::sgd;
    o.clip = isotope::clipping::none;
    auto plan = isotope::plan_training<T>(Model{}, o);
    EXPECT_TRUE(plan.ok()) << plan.error().line();
    auto device = there(isotope::device<T>::open());
    auto s = device->load(*std::move(plan));
    EXPECT_TRUE(s.ok()) << s.error().line();
    s->initialize(seed);
    fill_inputs<storage>(turn, [&](std::string_view label, const std::vector<storage>& values) {
      const auto to = s->template input<storage>(label);
      ASSERT_TRUE(to.ok()) << to.error().line();
      ASSERT_EQ(to->size(), values.size());
      std::copy(values.begin(), values.end(), to->begin());
    });
    trained r;
    for (int i = 1; i <= steps; ++i) {
      isotope::step_scalars x;
      x.learning_rate = 0.1f;
      x.momentum = 0.9f;
      x.optimizer_step = i;
      r.losses.push_back(s->run(x).loss);
    }
    for (std::size_t k = 0; k < s->parameters().size(); ++k) {
      const auto& slot = s->parameters()[k];
      std::vector<float> values(std::size_t(slot.dims.count()));
      EXPECT_TRUE(s->read(isotope::tensor_kind::parameter, k, values).ok());
      r.parameters[std::string(slot.path.view())] = values;
      EXPECT_TRUE(s->read(isotope::tensor_kind::gradient, k, values).ok());
      r.gradients[std::string(slot.path.view())] = values;
    }
    return r;
  }
  /// Compares loss and gradients of one step with plain loops in f64: errors are at most `unit` times the largest number of the tensor.
  template <class Model> static void expect_loss_and_gradients_within(double unit) {
    using oracle = isotope::target<isotope::backend::cpu, isotope::precision::f64, isotope::kernels::reference>;
    isotope::eager<oracle> machine(3);
    fill_inputs<double>(
        0, [&](std::string_view label, const std::vector<double>& values) { machine.set(label, std::span<const double>(values)); });
    const auto loss = Model{}(isotope::scope<isotope::eager<oracle>>{&machine, {}});
    isotope::differentiate(machine, loss.id);
    ASSERT_TRUE(machine.ok()) << machine.g.error.view();
    const auto r = train<Model>({}, 1);
    EXPECT_NEAR(r.losses[0], machine.read(loss)[0], unit * std::abs(machine.read(loss)[0]));
    ASSERT_EQ(machine.g.params.size(), r.gradients.size());
    for (const auto& p : machine.g.params) {
      const auto expected = machine.read(p.grad);
      const auto& found = r.gradients.at(std::string(p.path.view()));
      ASSERT_EQ(found.size(), expected.size());
      double most = 0;
      for (const double g : expected) most = std::max(most, std::abs(g));
      EXPECT_GT(most, 0) << p.path.view();
      for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], unit * most) << p.path.view() << " " << i;
    }
  }
  static void expect_same(const trained& a, const trained& b) {
    EXPECT_EQ(a.losses, b.losses);
    EXPECT_EQ(a.parameters, b.parameters);
    EXPECT_EQ(a.gradients, b.gradients);
  }
};
TYPED_TEST_SUITE_P(backend_suite);

TYPED_TEST_P(backend_suite, the_loss_falls) {
  const auto r = TestFixture::train({}, 100);
  EXPECT_GT(r.losses.front(), 0.1);
  EXPECT_LT(r.losses.back(), r.losses.front() / 4);
}

TYPED_TEST_P(backend_suite, the_same_seed_and_inputs_give_the_same_bits_and_others_do_not) {
  using F = TestFixture;
  const auto once = F::train({}, 4);
  F::expect_same(F::train({}, 4), once);
  EXPECT_NE(F::train({}, 4, 4).losses, once.losses);
  EXPECT_NE(F::train({}, 4, 3, 0.5).losses, once.losses);
}

TYPED_TEST_P(backend_suite, plain_unfused_and_recomputed_steps_have_the_same_bits) {
  using F = TestFixture;
  const auto plain = F::train({}, 4);
  F::expect_same(F::train({.fuse = false}, 4), plain);
  F::expect_same(F::train({.recompute = isotope::recompute::all}, 4), plain);
  F::expect_same(F::train({.recompute = isotope::recompute::all, .fuse = false}, 4), plain);
}

TYPED_TEST_P(backend_suite, loss_and_gradients_of_two_layers_are_those_of_plain_loops_in_double_precision) {
  TestFixture::template expect_loss_and_gradients_within<two_layers>(TestFixture::wide ? 1e-5 : 0x1p-7);
}

TYPED_TEST_P(backend_suite, loss_and_gradients_of_two_blocks_are_those_of_plain_loops_in_double_precision) {
  TestFixture::template expect_loss_and_gradients_within<two_blocks>(TestFixture::wide ? 1e-5 : 0x1p-5);
}

TYPED_TEST_P(backend_suite, what_is_not_there_is_an_error) {
  auto plan = isotope::plan_training<TypeParam>(two_blocks{}, {.optimizer = isotope::optimizer_kind::sgd});
  ASSERT_TRUE(plan.ok()) << plan.error().line();
  auto device = there(isotope::device<TypeParam>::open());
  auto s = device->load(*std::move(plan));
  ASSERT_TRUE(s.ok()) << s.error().line();
  EXPECT_EQ(s->template input<float>("tokens").error().code, isotope::errc::not_found);
  std::vector<float> one(1);
  EXPECT_EQ(s->read(isotope::tensor_kind::parameter, 0, one).error().code, isotope::errc::invalid_argument);
  EXPECT_EQ(s->read(isotope::tensor_kind::parameter, s->parameters().size(), one).error().code, isotope::errc::not_found);
}

REGISTER_TYPED_TEST_SUITE_P(backend_suite, the_loss_falls, the_same_seed_and_inputs_give_the_same_bits_and_others_do_not,
                            plain_unfused_and_recomputed_steps_have_the_same_bits,
                            loss_and_gradients_of_two_layers_are_those_of_plain_loops_in_double_precision,
                            loss_and_gradients_of_two_blocks_are_those_of_plain_loops_in_double_precision, what_is_not_there_is_an_error);

}  // namespace isotope_test
using isotope_test::backend_suite;
