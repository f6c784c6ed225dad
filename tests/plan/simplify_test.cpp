/// Constants, identities and common subexpressions, a test for each rule; and what must not be merged.
#include "outcome.hpp"

#include <isotope/op/all.hpp>
#include <isotope/plan/dynamic.hpp>

using namespace plan_test;

namespace simplify_test {
using isotope::dtype, isotope::tensor;

template <class T> struct simplified : testing::Test {};
TYPED_TEST_SUITE(simplified, every_target, target_name);

/// A model of one input x and one parameter w, both {4, 6}.
template <class F> struct model_of {
  F f;
  template <isotope::Machine M> constexpr tensor<M> operator()(isotope::scope<M> s) const {
    return f(s, s.input("x", {4, 6}), s.param("w", {4, 6}, isotope::init::normal(1)));
  }
};
template <class F> model_of(F) -> model_of<F>;

/// The ops that a program runs, unfused, in order.
template <class F> std::vector<std::string> ops_of(F f) {
  std::vector<std::string> names;
  const auto g = isotope::traced_inference<reference_f32>(model_of{f}, false);
  EXPECT_EQ(g.error.view(), "");
  for (const auto& n : g.nodes) {
    if (n.dead || n.op->kind == isotope::op_kind::view) continue;
    if (n.op != &isotope::info<isotope::op::elementwise>) names.emplace_back(n.op->name);
    else
      for (int k = 0; k < n.body_size; ++k) names.emplace_back(g.micro_ops[std::size_t(n.body + k)].op->name);
  }
  return names;
}
using names = std::vector<std::string>;

TEST(simplify, identities_vanish) {
  const auto number = [](auto& s, double c) { return fill(*s.machine, {4, 6}, dtype::f32, c); };
  EXPECT_EQ(ops_of([](auto, auto x, auto) { return tanh(scale(x, 1)); }), names{"tanh"});
  EXPECT_EQ(ops_of([](auto, auto x, auto) { return tanh(shift(x, 0)); }), names{"tanh"});
  EXPECT_EQ(ops_of([&](auto s, auto x, auto) { return tanh(x + number(s, -0.0)); }), names{"tanh"});
  EXPECT_EQ(ops_of([&](auto s, auto x, auto) { return tanh(number(s, -0.0) + x); }), names{"tanh"});
  EXPECT_EQ(ops_of([&](auto s, auto x, auto) { return tanh(x - number(s, 0)); }), names{"tanh"});
  EXPECT_EQ(ops_of([&](auto s, auto x, auto) { return tanh(x * number(s, 1)); }), names{"tanh"});
  EXPECT_EQ(ops_of([&](auto s, auto x, auto) { return tanh(number(s, 1) * x); }), names{"tanh"});
  EXPECT_EQ(ops_of([&](auto s, auto x, auto) { return tanh(div(x, number(s, 1))); }), names{"tanh"});
}
TEST(simplify, what_is_no_identity_stays) {
  EXPECT_EQ(ops_of([](auto s, auto x, auto) { return tanh(fill(*s.machine, {4, 6}, dtype::f32, 0) - x); }), (names{"fill", "sub", "tanh"}));
  EXPECT_EQ(ops_of([](auto s, auto x, auto) { return tanh(div(fill(*s.machine, {4, 6}, dtype::f32, 1), x)); }),
            (names{"fill", "div", "tanh"}));
  EXPECT_EQ(ops_of([](auto, auto x, auto) { return tanh(scale(x, 1.0000001)); }), (names{"scale", "tanh"}));
  EXPECT_EQ(ops_of([](auto s, auto x, auto) { return tanh(x + fill(*s.machine, {4, 6}, dtype::f32, 0)); }), (names{"fill", "add", "tanh"}))
      << "-0 + 0 is 0";
  const auto repeated = [](auto s, auto x, auto) {
    const auto row = sum(x, {0});
    return tanh(row + fill(*s.machine, {4, 6}, dtype::f32, -0.0));
  };
  EXPECT_EQ(ops_of(repeated), (names{"sum", "fill", "add", "tanh"})) << "the sum has more rows";
  // The result of a program is its own memory.
  EXPECT_EQ(ops_of([](auto, auto x, auto) { return scale(x, 1); }), names{"scale"});
}
TEST(simplify, constants_are_calculated) {
  const auto value_of = [](auto f) {
    const auto g = isotope::traced_inference<reference_f32>(model_of{f}, false);
    double v = std::nan("");
    for (const auto& n : g.nodes)
      if (!n.dead && n.op == &isotope::info<isotope::op::fill>) v = n.attr.scalar();
    return v;
  };
  const auto number = [](auto& s, double c) { return fill(*s.machine, {4, 6}, dtype::f32, c); };
  const auto of = [&](auto f) {
    const auto model = [=](auto s, auto x, auto) { return x * f(s); };
    EXPECT_EQ(ops_of(model), (names{"fill", "mul"}));
    return value_of(model);
  };
  EXPECT_EQ(of([=](auto s) { return number(s, 0.1) + number(s, 0.2); }), double(0.1f + 0.2f));
  EXPECT_EQ(of([=](auto s) { return number(s, 0.1) - number(s, 0.3); }), double(0.1f - 0.3f));
  EXPECT_EQ(of([=](auto s) { return number(s, 0.1) * number(s, 0.3); }), double(0.1f * 0.3f));
  EXPECT_EQ(of([=](auto s) { return div(number(s, 0.1), number(s, 0.3)); }), double(0.1f / 0.3f));
  EXPECT_EQ(of([=](auto s) { return shift(scale(number(s, 0.1), 7), 0.7); }), double(0.1f * 7.0f + 0.7f));
}
TEST(simplify, common_subexpressions_are_computed_once) {
  EXPECT_EQ(ops_of([](auto, auto x, auto w) { return matmul(x, transpose(w)) + matmul(x, transpose(w)); }), (names{"matmul", "add"}));
  EXPECT_EQ(ops_of([](auto, auto x, auto w) { return tanh(x * w) + square(tanh(x * w)); }), (names{"mul", "tanh", "square", "add"}));
  EXPECT_EQ(ops_of([](auto, auto x, auto w) { return tanh(x * w) + tanh(w * x); }), (names{"mul", "tanh", "mul", "tanh", "add"}))
      << "in this order";
  EXPECT_EQ(ops_of([](auto, auto x, auto) { return sum(x, {0}) + sum(x, {1}, true); }), (names{"sum", "sum", "add"}))
      << "attributes differ";
}
TEST(simplify, what_draws_random_numbers_is_drawn_each_time) {
  const auto model = model_of{[](auto, auto x, auto w) { return mean(dropout(x * w, 0.5) + dropout(x * w, 0.5)); }};
  const auto g = isotope::traced_training<reference_f32>(model, {.fuse = false});
  int drawn = 0;
  for (const auto& n : g.nodes) drawn += !n.dead && n.op == &isotope::info<isotope::op::dropout>;
  EXPECT_EQ(drawn, 4) << "twice forward, twice backward";
}

/// A loss that writes everything twice and adds nothing now and then, or the same without.
struct wordy_loss {
  bool wordy = true;
  template <isotope::Machine M> constexpr tensor<M> operator()(isotope::scope<M> s) const {
    const auto x = s.input("x", {4, 6});
    const auto w = s.param("w", {5, 6}, isotope::init::normal(1));
    const auto nothing = [&](tensor<M> y) { return wordy ? shift(scale(y, 1), 0) : y; };
    const auto h = [&] { return tanh(matmul(nothing(x), transpose(w))); };
    const auto first = h(), second = wordy ? h() : first;
    return mean(square(nothing(first)) * nothing(second));
  }
};
TYPED_TEST(simplified, a_wordy_model_trains_to_the_same_bits) {
  const auto run = [](bool wordy, isotope::recompute_policy recompute) {
    auto s = loaded<TypeParam>(planned<TypeParam>(wordy_loss{wordy}, {.recompute = recompute}));
    return step(s);
  };
  const auto plain = run(false, isotope::recompute::none), wordy = run(true, isotope::recompute::none),
             again = run(true, isotope::recompute::all);
  EXPECT_EQ(plain.loss, wordy.loss);
  EXPECT_EQ(wordy.loss, again.loss);
  EXPECT_TRUE(same_bits(wordy.parameters.at("w"), again.parameters.at("w")));
}
}  // namespace simplify_test
