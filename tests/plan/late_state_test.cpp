/// States of sizes known late, which keep their elements in place while they grow, and what late sizes are refused for.
#include "outcome.hpp"

#include <isotope/op/all.hpp>
#include <isotope/plan/late.hpp>

#include <cmath>

using namespace plan_test;

namespace late_state_test {

using isotope::dim;
using isotope::Machine;
using isotope::scalar_dim;
using isotope::scope;
using isotope::tensor;

constexpr int limit = 6, width = 8, batch = 2;
constexpr scalar_dim late{limit, 1};

/// keys += x; what reads them in their order, as rows, as a matrix, turned, and in attention.
struct cached {
  dim S;
  template <Machine M> tensor<M> operator()(scope<M> s) const {
    using namespace isotope;
    const auto keys = s.state("keys", {batch, S, width}), turned = s.state("turned", {batch, width, S});
    const auto now = assign(keys, keys + s.input("x", {batch, S, width}));
    const auto other = assign(turned, turned * 0.5 + transpose(now));
    const auto q = s.input("q", {batch, 1, width});
    const auto y = matmul(now, s.input("w", {width, width})) + softmax(now, 1) + rms_norm(now * 1.0, s.input("norm", {width}));
    const auto read = attention(q, now, tanh(now), 2, {.causal = false}) + reshape(sum(contiguous(other), {2}), {batch, 1, width});
    const auto pairs = reshape(permute(reshape(now, {batch, S, 2, 4}), {0, 1, 3, 2}), {batch, S, width});
    return y + read + narrow(transpose(other), 2, 0, 1) * pairs;
  }
};

template <class T> using element = typename T::precision::storage;

template <class T> session_of<T> forward(const auto& model) {
  auto p = isotope::plan_inference<T>(model);
  if (!p.ok()) throw std::runtime_error(p.error().line());
  return loaded<T>(std::move(*p));
}
template <class Session> std::vector<float> state_of(const Session& s, std::size_t k) {
  std::vector<float> x(std::size_t(s.states()[k].where.dims.count()));
  EXPECT_TRUE(s.read(isotope::tensor_kind::state, k, x).ok());
  return x;
}
/// The first `S` of `limit` parts of each of the `outer` rows, of `inner` elements each.
inline std::vector<float> front(const std::vector<float>& x, int outer, int S, int inner) {
  std::vector<float> r;
  for (int o = 0; o < outer; ++o)
    for (int i = 0; i < S * inner; ++i) r.push_back(x[std::size_t(o * limit * inner + i)]);
  return r;
}
inline void put_front(std::vector<float>& x, const std::vector<float>& from, int outer, int S, int inner) {
  for (int o = 0; o < outer; ++o)
    for (int i = 0; i < S * inner; ++i) x[std::size_t(o * limit * inner + i)] = from[std::size_t(o * S * inner + i)];
}
inline isotope::step_scalars of(int S) {
  auto x = scalars();
  x.sizes[1] = S;
  return x;
}

template <class T> struct late_states : testing::Test {};
TYPED_TEST_SUITE(late_states, every_target, target_name);

/// What stays behind the actual size is as it was, and what is before it is what a plan of that size makes of it.
TYPED_TEST(late_states, keep_elements_in_place_while_they_grow_and_shrink) {
  using E = element<TypeParam>;
  auto s = forward<TypeParam>(cached{late});
  std::vector<float> keys = state_of(s, 0), turned = state_of(s, 1);
  EXPECT_EQ(keys, std::vector<float>(batch * limit * width, 0));
  for (const int S : {2, 3, limit, 1, 0, 5}) {
    auto fixed = forward<TypeParam>(cached{S});
    ASSERT_TRUE(fixed.write(isotope::tensor_kind::state, 0, front(keys, batch, S, width)).ok());
    ASSERT_TRUE(fixed.write(isotope::tensor_kind::state, 1, front(turned, batch * width, S, 1)).ok());
    fixed.run(scalars(), isotope::phase_always);
    s.run(of(S), isotope::phase_always);
    put_front(keys, state_of(fixed, 0), batch, S, width);
    put_front(turned, state_of(fixed, 1), batch * width, S, 1);
    EXPECT_EQ(state_of(s, 0), keys) << S;
    EXPECT_EQ(state_of(s, 1), turned) << S;
    const auto y = *s.template output<E>("output"), want = *fixed.template output<E>("output");
    // Kernels may take other tiles for a state's strides than for dense rows, so sums of up to `width` terms may round in another order.
    constexpr float unit = sizeof(E) == 4 ? 0x1p-23f : 0x1p-7f;
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(float(y[i]), float(want[i]), width * unit * (1 + std::fabs(float(want[i])))) << S << " " << i;
  }
  auto other = forward<TypeParam>(cached{late});  // goes on where the first one is
  ASSERT_TRUE(other.write(isotope::tensor_kind::state, 0, keys).ok() && other.write(isotope::tensor_kind::state, 1, turned).ok());
  s.run(of(4), isotope::phase_always);
  other.run(of(4), isotope::phase_always);
  EXPECT_EQ(state_of(s, 0), state_of(other, 0));
  EXPECT_EQ(state_of(s, 1), state_of(other, 1));
  s.clear_states();
  EXPECT_EQ(state_of(s, 0), std::vector<float>(batch * limit * width, 0));
}

TEST(late_inputs, take_as_many_elements_as_there_are) {
  auto s = forward<reference_f32>(cached{late});
  const std::vector<float> x(std::size_t(batch * 2 * width), 1.5f), more(std::size_t(batch * limit * width + 1));
  ASSERT_TRUE(s.set("x", std::span<const float>(x)).ok());
  EXPECT_FALSE(s.set("x", std::span<const float>(more)).ok());
  EXPECT_FALSE(s.set("q", std::span<const float>(x).first(3)).ok()) << "its size is constant";
  s.run(of(2), isotope::phase_always);
  EXPECT_EQ(front(state_of(s, 0), batch, 2, width), x);
}

struct turned {
  template <Machine M> constexpr tensor<M> operator()(scope<M> s) const {
    using namespace isotope;
    return softmax(permute(s.input("x", {batch, late, width}), {2, 0, 1})) * 2.0;
  }
};
TEST(late_plans, are_the_same_made_by_the_compiler) {
  using program = isotope::inference<turned, reference_f32>;
  const isotope::plan_view fixed = program::view();
  const auto dynamic = isotope::plan_inference<reference_f32>(turned{});
  ASSERT_TRUE(dynamic.ok());
  const isotope::plan_view other = *dynamic;
  ASSERT_TRUE(fixed.late.size() == other.late.size() && fixed.operands.size() == other.operands.size());
  EXPECT_GT(fixed.late.size(), 0u);
  for (std::size_t k = 0; k < fixed.operands.size(); ++k) EXPECT_EQ(fixed.operands[k].late, other.operands[k].late);
  for (std::size_t k = 0; k < fixed.late.size(); ++k) {
    EXPECT_EQ(fixed.late[k].at, other.late[k].at);
    EXPECT_TRUE(fixed.late[k].layout.strides == other.late[k].layout.strides && fixed.late[k].layout.offset == other.late[k].layout.offset);
  }
}
/// At the limits, what is resolved is what was planned: strides, places and bytes.
TEST(late_plans, lie_at_the_limits_as_they_were_planned) {
  const auto plan = isotope::plan_inference<reference_f32>(cached{late});
  ASSERT_TRUE(plan.ok());
  isotope::late_resolver at(*plan);
  at.set(of(limit).sizes);
  for (const auto& o : plan->operands) {
    const auto there = at.at(o);
    EXPECT_TRUE(there.at == o.at && there.bytes == o.bytes && there.strides == o.strides && there.dims.d == o.dims.d);
  }
}

template <class F> struct model_of {
  F make;
  template <Machine M> tensor<M> operator()(scope<M> s) const { return make(s); }
};
std::string refusal(const auto& make) {
  const auto p = isotope::plan_inference<reference_f32>(model_of{make});
  return p.ok() ? std::string("planned") : p.error().line();
}
void expect_refused(const std::string& text, const auto& make) {
  const auto line = refusal(make);
  EXPECT_NE(line.find(text), std::string::npos) << line;
}
/// (B, S, C) with S late, and what is done with it.
auto with_input(const auto& use) {
  return [use](auto s) { return use(s, s.input("x", {batch, late, width})); };
}

TEST(late_axes_are_refused, where_views_would_take_them_apart) {
  using namespace isotope;
  expect_refused("a late axis neither merges nor splits: [2,<=6,8] to [12,8]: name it in both with the same scalar_dim",
                 with_input([](auto, auto x) { return reshape(x, {batch * limit, width}); }));
  expect_refused("a late axis neither merges nor splits: [2,<=6,8] to [2,2,3,8]",
                 with_input([](auto, auto x) { return reshape(x, {batch, 2, 3, width}); }));
  expect_refused("narrow: the axis has a late size: a range needs a constant one",
                 with_input([](auto, auto x) { return narrow(x, 1, 0, 2); }));
  expect_refused("split: the axis has a late size: parts need a constant one", with_input([](auto, auto x) { return split<2>(x, 1)[0]; }));
  expect_refused("pad: the axis has a late size: padding needs a constant one",
                 with_input([](auto, auto x) { return pad(x, 1, 0, limit + 1); }));
  expect_refused("concat: the axis has a late size: join along an axis of constant size",
                 with_input([](auto, auto x) { return concat({x, x}, 1); }));
}
/// A view from outside the library that gives strides as numbers.
struct same_bytes {
  static constexpr std::string_view name = "same_bytes";
  static constexpr isotope::op_kind kind = isotope::op_kind::view;
  static constexpr void infer(isotope::shape_rule& r) { r.yield_view(r.dims(0), 0, r.in(0).strides); }
};
TEST(late_axes_are_refused, by_views_with_strides_of_their_own) {
  using namespace isotope;
  const auto viewed = [](auto x) { return apply<same_bytes>(place::current(), {}, x) * 2.0; };
  expect_refused("same_bytes: a view with strides of its own has constant sizes; say along which axes it runs",
                 with_input([=](auto, auto x) { return viewed(x); }));
  EXPECT_EQ(refusal(with_input([=](auto s, auto x) { return x + viewed(s.input("y", {1, width})); })), "planned");
}
TEST(late_axes_are_refused, where_an_op_needs_a_constant_size) {
  using namespace isotope;
  expect_refused("a late axis may have no elements to choose from", with_input([](auto, auto x) { return max(x, {1}); }));
  expect_refused("argmax: a late axis may have no elements to choose from",
                 with_input([](auto, auto x) { return cast(argmax(x, 1), dtype::f32); }));
  expect_refused("top_k: a row has a late size", with_input([](auto, auto x) { return top_k(transpose(x), 2).first; }));
  expect_refused("categorical: the number of classes is a late size",
                 with_input([](auto, auto x) { return cast(categorical(transpose(x)), dtype::f32); }));
  expect_refused("rope: the head size is a late size", [](auto s) { return rope(s.input("x", {2, 3, 4, late})); });
  expect_refused("rfft: the axis of a transform needs a size that is known", with_input([](auto, auto x) { return rfft(transpose(x)); }));
  expect_refused("cross_entropy: the number of classes is a late size",
                 [](auto s) { return cross_entropy(s.input("x", {2, late}), s.input("t", {2}, dtype::i32)); });
  expect_refused("attention: the width has a late size: heads need a constant one",
                 with_input([](auto, auto x) { return attention(transpose(x), 1); }));
}
TEST(late_axes_are_refused, where_they_meet_other_sizes) {
  using namespace isotope;
  expect_refused("add: shapes do not broadcast; a late size fits the same scalar_dim or 1: [2,<=6,8] vs [2,6,8]",
                 with_input([](auto s, auto x) { return x + s.input("y", {batch, limit, width}); }));
  expect_refused("add: shapes do not broadcast",
                 with_input([](auto s, auto x) { return x + s.input("y", {batch, scalar_dim{limit, 2}, width}); }));
  expect_refused("matmul: inner dimensions differ",
                 with_input([](auto s, auto x) { return matmul(transpose(x), s.input("w", {limit, width})); }));
  expect_refused("causal attention of late sizes might have more queries than keys: give both one size, or one query",
                 with_input([](auto s, auto x) { return attention(s.input("q", {batch, 2, width}), x, x, 2); }));
  expect_refused("the late size of slot 1 has two limits, 6 and 4: give a slot one limit, and another size another slot",
                 with_input([](auto s, auto x) { return sum(x) + sum(s.input("y", {scalar_dim{4, 1}})); }));
  expect_refused("has a late dimension whose slot is not 0 to 15", [](auto s) { return s.input("x", {scalar_dim{4, 16}}) * 2.0; });
  expect_refused("parameter 'w' has a late dimension",
                 with_input([](auto s, auto x) { return x * s.param("w", {late, width}, init::ones); }));
}
/// A loss with a state of late size beside it.
struct late_loss {
  template <Machine M> tensor<M> operator()(scope<M> s) const {
    using namespace isotope;
    const auto seen = s.state("seen", {late});
    static_cast<void>(assign(seen, seen + 1.0));
    return mean(square(s.input("x", {width}) * s.param("w", {width}, init::ones)));
  }
};
TEST(late_axes_are_refused, in_training_also_where_only_states_have_them) {
  const auto p = isotope::plan_training<reference_f32>(late_loss{});
  ASSERT_FALSE(p.ok());
  EXPECT_NE(p.error().line().find("has a size known late: train with constant sizes"), std::string::npos) << p.error().line();
}
TEST(late_axes_are_refused, by_a_mean_of_targets_that_divide_by_constants) {
  const auto make = with_input([](auto, auto x) { return mean(x, {1}); });
  const auto p = isotope::plan_inference<reference_f32>(model_of{make}, 0, true, true);
  ASSERT_FALSE(p.ok());
  EXPECT_NE(p.error().line().find("mean: axis 1 of [2,<=6,8] has a late size"), std::string::npos) << p.error().line();
}

}  // namespace late_state_test
