/// States, which a model keeps from run to run: they are read and written by steps, shared by plans, cleared and saved; reads of overwritten contents are
/// refused.
#include <isotope/eager/eager.hpp>

#include "outcome.hpp"

#include <isotope/op/all.hpp>

#include <array>
#include <string>
#include <vector>

using namespace plan_test;

namespace state_test {

constexpr int rows = 4, width = 8;

/// sum += x, then y = sum^2 + tanh(sum): the addition reads the state before the assignment, and the square reads it after.
struct running_sum {
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    const auto x = s.input("x", {rows, width});
    const auto sum = (s / "h").state("sum", {rows, width});
    const auto next = sum + x;
    const auto now = assign(sum, next);
    return now * now + tanh(next);
  }
};
/// Only reads the state.
struct reader {
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    return (s / "h").state("sum", {rows, width}) * 2.0;
  }
};
/// Sums of rows, where the number of rows is the first scalar dimension.
struct late_rows {
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    return sum(s.input("z", {isotope::scalar_dim{rows, 0}, width}), {-1});
  }
};
/// Two states: one is assigned its own transpose, and one is added to.
struct swapped {
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    const auto a = s.state("a", {width, width}), b = s.state("b", {rows, width});
    const auto turned = assign(a, transpose(a));
    return assign(b, b + s.input("x", {rows, width})) + sum(turned, {0}, true);
  }
};
/// A loss, and a state that counts how often it was computed.
struct counted_loss {
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    const auto count = s.state("count", {1}, isotope::dtype::f32);
    static_cast<void>(assign(count, count + fill(*s.machine, {1}, isotope::dtype::f32, 1.0)));
    return mean(square(s.input("x", {rows, width}) * s.param("w", {width}, isotope::init::ones)));
  }
};

template <class T> session_of<T> forward(const auto& model) {
  auto p = isotope::plan_inference<T>(model);
  EXPECT_TRUE(p.ok()) << (p.ok() ? "" : p.error().line());
  auto s = loaded<T>(std::move(*p));
  return s;
}
template <class Session> std::vector<float> state_of(const Session& s, std::size_t k = 0) {
  std::vector<float> x(std::size_t(s.states()[k].where.dims.count()));
  EXPECT_TRUE(s.read(isotope::tensor_kind::state, k, x).ok());
  return x;
}
template <class Session> std::vector<float> run(Session& s, std::size_t which = 0) {
  using E = typename Session::target::precision::storage;
  EXPECT_TRUE(s.run_plan(which).ok());
  std::vector<float> y;
  const auto found = s.template output<E>("output", which);
  EXPECT_TRUE(found.ok());
  for (const E v : *found) y.push_back(float(v));
  return y;
}
template <class Session> void fill_x(Session& s, float v) {
  using E = typename Session::target::precision::storage;
  const auto x = s.template input<E>("x");
  ASSERT_TRUE(x.ok());
  for (E& e : *x) e = E(v);
}

template <class T> struct states : testing::Test {};
TYPED_TEST_SUITE(states, every_target, target_name);

TYPED_TEST(states, keep_their_contents_from_run_to_run_until_they_are_cleared) {
  auto s = forward<TypeParam>(running_sum{});
  ASSERT_EQ(s.states().size(), 1u);
  EXPECT_EQ(s.states()[0].label.view(), "h.sum");
  EXPECT_EQ(state_of(s), std::vector<float>(rows * width, 0));
  fill_x(s, 1);
  const auto first = run(s);
  EXPECT_EQ(state_of(s), std::vector<float>(rows * width, 1));
  run(s), fill_x(s, 0.5f), run(s);
  EXPECT_EQ(state_of(s), std::vector<float>(rows * width, 2.5f));
  fill_x(s, 1);
  EXPECT_NE(run(s), first);
  s.clear_states();
  EXPECT_EQ(state_of(s), std::vector<float>(rows * width, 0));
  EXPECT_EQ(run(s), first);
  s.initialize(3);
  EXPECT_EQ(state_of(s), std::vector<float>(rows * width, 0));
  EXPECT_EQ(run(s), first);
}
TYPED_TEST(states, are_written_and_read_by_the_host) {
  auto s = forward<TypeParam>(running_sum{});
  std::vector<float> given;
  for (int i = 0; i < rows * width; ++i) given.push_back(float(i) - 7);
  ASSERT_TRUE(s.write(isotope::tensor_kind::state, 0, given).ok());
  EXPECT_EQ(state_of(s), given);
  fill_x(s, 2);
  run(s);
  for (float& v : given) v += 2;
  EXPECT_EQ(state_of(s), given);
  EXPECT_TRUE(s.keeps(isotope::tensor_kind::state, 0));
  EXPECT_FALSE(s.keeps(isotope::tensor_kind::state, 1));
  EXPECT_EQ(s.write(isotope::tensor_kind::state, 1, given).error().code, isotope::errc::not_found);
  EXPECT_EQ(s.write(isotope::tensor_kind::state, 0, std::vector<float>(3)).error().code, isotope::errc::invalid_argument);
}
TYPED_TEST(states, are_shared_by_the_plans_of_a_session) {
  std::vector<isotope::owned_plan> plans;
  plans.push_back({"append", *isotope::plan_inference<TypeParam>(running_sum{})});
  plans.push_back({"look", *isotope::plan_inference<TypeParam>(reader{})});
  auto device = opened<TypeParam>(1);
  auto s = device->load(std::move(plans));
  ASSERT_TRUE(s.ok()) << s.error().line();
  const auto look = s->find("look");
  ASSERT_TRUE(look.ok());
  EXPECT_NE(s->find("decode").error().line().find("there are: append, look"), std::string::npos);
  fill_x(*s, 1.5f);
  run(*s), run(*s);
  EXPECT_EQ(run(*s, *look), std::vector<float>(rows * width, 6));
  std::vector<isotope::owned_plan> others;
  others.push_back({"append", *isotope::plan_inference<TypeParam>(running_sum{})});
  others.push_back({"swapped", *isotope::plan_inference<TypeParam>(swapped{})});
  EXPECT_EQ(device->load(std::move(others)).error().code, isotope::errc::model_mismatch);
}
TYPED_TEST(states, that_a_plan_besides_the_first_has_written_are_cleared_and_its_scalars_are_its_own) {
  std::vector<isotope::owned_plan> plans;
  plans.push_back({"look", *isotope::plan_inference<TypeParam>(reader{})});
  plans.push_back({"append", *isotope::plan_inference<TypeParam>(running_sum{})});
  plans.push_back({"late", *isotope::plan_inference<TypeParam>(late_rows{})});
  auto device = opened<TypeParam>(1);
  auto s = device->load(std::move(plans));
  ASSERT_TRUE(s.ok()) << s.error().line();
  using E = typename TypeParam::precision::storage;
  const auto x = s->template input<E>("x", 1);
  ASSERT_TRUE(x.ok());
  std::fill(x->begin(), x->end(), E(3.0f));
  run(*s, 1);
  EXPECT_EQ(state_of(*s), std::vector<float>(rows * width, 3));
  s->initialize(3);
  EXPECT_EQ(state_of(*s), std::vector<float>(rows * width, 0));
  const auto z = s->template input<E>("z", 2);
  ASSERT_TRUE(z.ok());
  std::fill(z->begin(), z->end(), E(1.0f));
  for (const int there : {1, rows}) {
    isotope::step_scalars given;
    given.sizes[0] = there;
    ASSERT_TRUE(s->run_plan(2, given).ok());
    const auto sums = s->template output<E>("output", 2);
    ASSERT_TRUE(sums.ok());
    for (int i = 0; i < there; ++i) EXPECT_EQ(float((*sums)[std::size_t(i)]), float(width)) << there;
    if (there == 1 && isotope::device<TypeParam>::on_host) {
      EXPECT_EQ(float((*sums)[1]), 0) << "rows beyond the actual size are not written";
    }
  }
}
TYPED_TEST(states, may_take_their_own_contents_in_another_order_fused_or_not) {
  std::vector<std::vector<float>> seen;
  for (const bool fused : {true, false}) {
    auto p = isotope::plan_inference<TypeParam>(swapped{}, 0, fused);
    ASSERT_TRUE(p.ok()) << p.error().line();
    auto s = loaded<TypeParam>(*std::move(p));
    std::vector<float> a;
    for (int i = 0; i < width * width; ++i) a.push_back(float(i));
    ASSERT_TRUE(s.write(isotope::tensor_kind::state, 0, a).ok());
    fill_x(s, 1);
    seen.push_back(run(s));
    std::vector<float> turned;
    for (int i = 0; i < width * width; ++i) turned.push_back(float(i % width * width + i / width));
    EXPECT_EQ(state_of(s), turned);
    EXPECT_EQ(state_of(s, 1), std::vector<float>(rows * width, 1));
  }
  EXPECT_EQ(seen[0], seen[1]);
}
TYPED_TEST(states, stand_beside_training_and_count_micro_batches) {
  auto s = loaded<TypeParam>(planned<TypeParam>(counted_loss{}, {.optimizer = isotope::optimizer_kind::sgd, .accumulate = true}));
  fill_x(s, 1);
  for (int i = 1; i <= 3; ++i) EXPECT_FALSE(s.run(scalars()).skipped);
  EXPECT_EQ(state_of(s), std::vector<float>(1, 3));
}

TEST(state_plans, give_the_bits_of_the_model_run_op_by_op) {
  using iso_eager = isotope::eager<reference_f32>;
  auto s = forward<reference_f32>(running_sum{});
  std::vector<float> x, before;
  for (int i = 0; i < rows * width; ++i) x.push_back(float(i) / 7), before.push_back(float(i % 5) - 2);
  ASSERT_TRUE(s.write(isotope::tensor_kind::state, 0, before).ok());
  ASSERT_TRUE(s.set("x", std::span<const float>(x)).ok());
  iso_eager machine(*opened<reference_f32>(1));
  machine.set("x", std::span<const float>(x));
  machine.set("h.sum", std::span<const float>(before));
  const auto y = running_sum{}(isotope::scope<iso_eager>{&machine, {}});
  ASSERT_TRUE(machine.ok()) << machine.g.error.view();
  std::vector<float> eager;
  for (const double v : machine.read(y)) eager.push_back(float(v));
  EXPECT_EQ(run(s), eager);
}

/// Reads the old contents of a state after an assignment, which is refused.
struct too_late {
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    const auto sum = s.state("sum", {2});
    static_cast<void>(assign(sum, sum * 2.0));
    return sum + 1.0;
  }
};
struct misshapen {
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    return assign(s.state("sum", {2}), s.input("x", {3}));
  }
};
struct no_state {
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    return assign(s.input("x", {3}), s.input("x", {3}));
  }
};
/// Attends to caches as they were before a row was added, or adds one to what is no state.
struct misused_cache {
  bool stale = false;
  template <isotope::Machine M> constexpr isotope::tensor<M> operator()(isotope::scope<M> s) const {
    const isotope::shape dims{1, 1, 4, 8};
    const auto keys = stale ? s.state("keys", dims) : s.input("keys", dims), values = s.state("values", dims);
    const auto x = s.input("x", {2, 8}), at = s.input("at", {2}, isotope::dtype::i32);
    static_cast<void>(isotope::cache_append(keys, values, x, x, at, at));
    return isotope::attention_cached(x, keys, values, at, at, 1);
  }
};
TEST(state_plans, that_cannot_mean_what_they_say_are_refused_with_the_reason) {
  const auto line = [](const auto& model) {
    const auto p = isotope::plan_inference<reference_f32>(model);
    return p.ok() ? std::string() : p.error().line();
  };
  EXPECT_NE(line(too_late{}).find("state 'sum' is read as it was before it was assigned to: read what assign returned"), std::string::npos)
      << line(too_late{});
  EXPECT_NE(line(misshapen{}).find("assign: the state is [2] f32, the value [3] f32: they must agree"), std::string::npos)
      << line(misshapen{});
  EXPECT_NE(line(no_state{}).find("is no state: give what scope.state or assign gave"), std::string::npos) << line(no_state{});
  EXPECT_NE(line(misused_cache{.stale = true}).find("state 'keys' is read as it was before it was assigned to"), std::string::npos)
      << line(misused_cache{.stale = true});
  EXPECT_NE(line(misused_cache{}).find("cache_append: [1,1,4,8] is no state: give what scope.state or an update of it gave"),
            std::string::npos)
      << line(misused_cache{});
  const auto recomputed = isotope::plan_training<reference_f32>(counted_loss{}, {.recompute = isotope::recompute::all});
  ASSERT_FALSE(recomputed.ok());
  EXPECT_NE(recomputed.error().line().find("a model with state cannot be recomputed"), std::string::npos) << recomputed.error().line();
}

}  // namespace state_test
