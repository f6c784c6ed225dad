// Ops as plain calls on tensors that the caller owns: the bits of a plan of the same target, and refusals with reasons.
#include <isotope/eager/tensor_ops.hpp>
#include <isotope/op/all.hpp>

#include "device_there.hpp"
#include "outcome.hpp"

#include <cmath>

using namespace plan_test;

namespace tensor_ops_test {

constexpr int rows = 24, in = 16, out = 8;

/// sum(x w * c): the gradient of the product is c.
struct weighted_product {
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    const auto x = s.input("x", {rows, in}), c = s.input("c", {rows, out});
    return sum(matmul(x, s.param("w", {in, out}, isotope::init::normal(0.5))) * c);
  }
};

template <class T> auto ops() {
  auto device = isotope_test::there(opened<T>(1));
  auto r = isotope::ops_on(*device);
  EXPECT_TRUE(r.ok()) << (r.ok() ? "" : r.error().line());
  return *std::move(r);
}
template <class R> auto good(R r) {
  if (!r.ok()) throw std::runtime_error(r.error().line());
  return *std::move(r);
}
template <class E> std::vector<float> wide(const std::vector<E>& x) {
  std::vector<float> r;
  for (const E& e : x) r.push_back(float(e));
  return r;
}
/// The start of the weights in the plan's format of accumulation.
template <class Session> std::vector<float> weights_of(const Session& s) { return read_all(s, isotope::tensor_kind::parameter).at("w"); }

template <class T> struct tensor_ops : testing::Test {};
TYPED_TEST_SUITE(tensor_ops, every_target, target_name);

TYPED_TEST(tensor_ops, come_back_as_they_were_sent) {
  auto o = ops<TypeParam>();
  std::vector<float> x;
  for (int i = 0; i < 24; ++i) x.push_back(float(i) / 8);
  const auto t = good(o.upload({2, 3, 4}, x));
  EXPECT_EQ(good(o.template download<float>(t)), x);
  EXPECT_EQ(good(o.template download<float>(good(t.part(4, {2, 4})))), std::vector<float>(x.begin() + 4, x.begin() + 12));
  EXPECT_EQ(good(o.template download<std::int32_t>(good(o.zeros({5}, isotope::dtype::i32)))), std::vector<std::int32_t>(5, 0));
}

TYPED_TEST(tensor_ops, matmul_and_its_gradient_have_the_bits_of_a_plan) {
  using E = typename TypeParam::precision::storage;
  auto s = loaded<TypeParam>(planned<TypeParam>(weighted_product{}));
  const auto w = weights_of(s);
  const auto report = s.run(scalars(), isotope::phase_first | isotope::phase_last);
  auto o = ops<TypeParam>();
  const auto x = good(o.upload({rows, in}, input_values<E>("x", rows * in))),
             c = good(o.upload({rows, out}, input_values<E>("c", rows * out)));
  std::vector<E> stored;
  for (const float e : w) stored.push_back(E(e));
  const auto v = good(o.upload({in, out}, stored));
  const auto loss = good(o.call([](auto y, auto k) { return sum(y * k); }, good(o.matmul(x, v)), c));
  EXPECT_EQ(double(float(good(o.template download<E>(loss))[0])), report.loss);
  const auto g = good(o.matmul_gradient(x, v, c));
  EXPECT_TRUE(same_bits(good(o.template download<float>(g.b)), read_all(s, isotope::tensor_kind::gradient).at("w")));
  const auto dx = good(o.call([](auto k, auto m) { return matmul(k, transpose(m)); }, c, v));
  EXPECT_EQ(wide(good(o.template download<E>(g.a))), wide(good(o.template download<E>(dx))));
}

/// Three updates by hand and by a session that lives on the same device, in turn.
TYPED_TEST(tensor_ops, a_loop_by_hand_trains_to_the_bits_of_a_session) {
  using E = typename TypeParam::precision::storage;
  auto s = loaded<TypeParam>(planned<TypeParam>(weighted_product{}));
  auto o = ops<TypeParam>();
  const auto x = good(o.upload({rows, in}, input_values<E>("x", rows * in))),
             c = good(o.upload({rows, out}, input_values<E>("c", rows * out)));
  const auto state = good(o.adamw(good(o.upload({in, out}, weights_of(s)))));
  std::int64_t taken = 0;
  for (int i = 1; i <= 3; ++i) {
    auto constants = scalars();
    constants.optimizer_step = i;
    constants.clip_norm = 0.5f;
    const auto report = s.run(constants, isotope::phase_first | isotope::phase_last);
    o.scalars = constants;
    const auto loss = good(o.call([](auto y, auto k) { return sum(y * k); }, good(o.matmul(x, state.values())), c));
    const auto g = good(o.matmul_gradient(x, state.values(), c));
    const auto norm = good(o.global_norm(g.b));
    ASSERT_TRUE(o.adamw_step(state, g.b, {}, norm, loss).ok());
    EXPECT_EQ(double(good(o.template download<float>(norm))[0]), report.grad_norm);
    EXPECT_TRUE(same_bits(good(o.template download<float>(state.weights)), weights_of(s))) << "update " << i;
    if (i == 1) taken = o.bytes();
  }
  EXPECT_EQ(o.bytes(), taken);  // what a round gave back served the next
}

TYPED_TEST(tensor_ops, clip_gradients_scales_all_by_their_common_norm) {
  auto o = ops<TypeParam>();
  const auto a = good(o.upload({3}, std::vector<float>{3, 0, 0})), b = good(o.upload({2, 2}, std::vector<float>{0, 4, 0, 0}));
  const std::array both{a, b};
  EXPECT_DOUBLE_EQ(good(o.clip_gradients(both, 10)), 5);
  EXPECT_EQ(good(o.template download<float>(b)), (std::vector<float>{0, 4, 0, 0}));
  EXPECT_DOUBLE_EQ(good(o.clip_gradients(both, 1)), 5);
  EXPECT_FLOAT_EQ(good(o.template download<float>(a))[0], 0.6f);
  EXPECT_FLOAT_EQ(good(o.template download<float>(b))[1], 0.8f);
}

/// More tensors than the first allocation holds, with ops that need scratch; and tensors that another tensor_ops of the device made.
TYPED_TEST(tensor_ops, work_beyond_one_allocation_and_on_tensors_of_others) {
  auto device = isotope_test::there(opened<TypeParam>(1));
  auto o = good(isotope::ops_on(*device)), other = good(isotope::ops_on(*device));
  const std::vector<float> x(300'000, 0.5f);
  std::vector<isotope::device_tensor<typename isotope::device<TypeParam>::queue_type>> kept;
  for (int i = 0; i < 4; ++i) {
    kept.push_back(good(o.upload({300'000}, x)));
    EXPECT_FLOAT_EQ(good(o.template download<float>(good(o.global_norm(kept.back()))))[0], std::sqrt(75'000.0f));
  }
  const auto state = good(o.adamw(kept[0]));
  const auto norm = good(o.global_norm(kept[1])), loss = good(o.zeros({}, isotope::dtype::f32));
  other.scalars.learning_rate = 0.25f;
  ASSERT_TRUE(other.adamw_step(state, kept[1], {.decay = false}, norm, loss).ok());  // allocates nothing of its own
  EXPECT_NEAR(good(o.template download<float>(state.weights))[7], 0.25f, 1e-5);
}

TEST(tensor_ops_errors, say_what_was_wrong) {
  auto o = ops<reference_f32>();
  const auto refused = [](const auto& r, isotope::errc code, std::string_view text) {
    ASSERT_FALSE(r.ok());
    EXPECT_EQ(r.error().code, code);
    EXPECT_NE(r.error().line().find(text), std::string::npos) << r.error().line();
  };
  const auto x = good(o.zeros({2, 3})), y = good(o.zeros({2, 4}));
  refused(o.matmul(x, y), isotope::errc::invalid_model, "inner dimensions differ");
  refused(o.matmul_gradient(x, good(o.zeros({3, 4})), x), isotope::errc::invalid_model,
          "the gradient [2,3] of a product of [2,3] and [3,4]");
  refused(o.matmul(x, {}), isotope::errc::invalid_model, "an empty tensor");
  refused(o.upload({2, 2}, std::vector<float>(3)), isotope::errc::invalid_argument, "3 numbers for 4 elements");
  refused(o.zeros({-1}), isotope::errc::invalid_argument, "has a negative dimension");
  refused(o.zeros({isotope::scalar_dim{3, 0}}), isotope::errc::invalid_argument, "is known late");
  refused(o.download<std::int32_t>(x), isotope::errc::invalid_argument, "the tensor holds f32");
  refused(x.part(4, {3}), isotope::errc::invalid_argument, "elements 4 to 7 of 6");
  refused(o.global_norm(good(o.zeros({3}, isotope::dtype::i32))), isotope::errc::invalid_argument, "the norm of i32 numbers");
  const auto narrow = good(o.zeros({2, 3}, isotope::dtype::bf16));
  refused(o.adamw(narrow), isotope::errc::invalid_argument, "weights in bf16");
  refused(o.adamw_step(good(o.adamw(x)), narrow), isotope::errc::invalid_argument, "a gradient in bf16");
}
TEST(tensor_ops_errors, a_tensor_of_another_device_is_refused) {
  auto one = isotope::device<on_cpu<isotope::precision::f32, isotope::kernels::reference>>::open({.threads = 1});
  auto other = isotope::device<on_cpu<isotope::precision::f32, isotope::kernels::reference>>::open({.threads = 1});
  auto a = good(isotope::ops_on(*one)), same = good(isotope::ops_on(*one)), b = good(isotope::ops_on(*other));
  const auto x = good(a.upload({2, 2}, std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(good(same.download<float>(good(same.matmul(x, x)))), (std::vector<float>{7, 10, 15, 22}));
  const auto r = b.matmul(x, x);
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, isotope::errc::wrong_device);
  EXPECT_NE(r.error().line().find("another device"), std::string::npos) << r.error().line();
}

}  // namespace tensor_ops_test
