#include "outcome.hpp"

#include <isotope/model/all.hpp>
#include <isotope/op/all.hpp>

using namespace plan_test;

namespace scalar_dimension_test {

constexpr int limit = 9, width = 8;

/// Rows (B, C) through matmuls, norms, row reductions and element-wise bodies, where B is a constant or a scalar dimension.
struct rows_model {
  isotope::dim rows;
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    using namespace isotope;
    auto x = s.input("x", {rows, width}) + embedding(s.param("table", {4, width}, init::normal(1)), s.input("ids", {rows}, dtype::i32));
    x = x + nn::mlp(s / "mlp", nn::layer_norm(s / "ln", x), 2 * width);
    const auto shared = softmax(nn::rms_norm(s / "rms", x)) * sum(x, {-1}, true);
    return nn::linear(s / "out", concat<M>({shared, tanh(x)}, -1), 5);
  }
};
/// Sequences (B, S, C) through attention and a reshape, where B is a constant or a scalar dimension.
struct batch_model {
  isotope::dim rows;
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    using namespace isotope;
    const auto x = s.input("x", {rows, 3, width});
    const auto y = attention(nn::linear(s / "qkv", x, 3 * width), 2);
    return mean(permute(x + nn::linear(s / "out", y, width), {0, 2, 1}), {-1});
  }
};

template <class T> using element = typename T::precision::storage;

template <class T> session_of<T> forward(const auto& model) {
  auto p = isotope::plan_inference<T>(model);
  EXPECT_TRUE(p.ok()) << (p.ok() ? "" : p.error().line());
  return loaded<T>(std::move(*p));
}
template <class E> bool same_bytes(std::span<const E> a, std::span<const E> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// A plan with a scalar dimension run with `rows` rows gives the same bits as a plan of that size, and does not write other rows.
template <class T, class Model> void compare_at(session_of<T>& dynamic, int rows, int slot) {
  using E = element<T>;
  auto fixed = forward<T>(Model{rows});
  auto x = scalars();
  x.sizes[std::size_t(slot)] = rows;
  auto y = *dynamic.template output<E>("output");
  const auto want = *fixed.template output<E>("output");
  const E untouched = E(-77.0f);
  std::fill(y.begin(), y.end(), untouched);
  dynamic.run(x, isotope::phase_always);
  fixed.run(scalars(), isotope::phase_always);
  EXPECT_TRUE(same_bytes<E>(y.first(want.size()), want)) << rows << " rows";
  if constexpr (std::is_same_v<typename T::backend, isotope::backend::cpu>) {  // on other backends, `output` is a copy of the whole tensor
    for (const auto& e : y.subspan(want.size())) EXPECT_TRUE(e == untouched) << rows << " rows";
  }
}

template <class T> struct scalar_dimension : testing::Test {};
TYPED_TEST_SUITE(scalar_dimension, every_target, target_name);

TYPED_TEST(scalar_dimension, gives_the_bits_of_a_plan_of_that_many_rows) {
  auto dynamic = forward<TypeParam>(rows_model{isotope::scalar_dim{limit, 2}});
  for (int rows : {limit, 1, 0, 4, limit, 7}) compare_at<TypeParam, rows_model>(dynamic, rows, 2);
}
TYPED_TEST(scalar_dimension, gives_the_bits_of_a_plan_of_that_many_sequences) {
  auto dynamic = forward<TypeParam>(batch_model{isotope::scalar_dim{limit, 0}});
  for (int rows : {1, limit, 0, 5}) compare_at<TypeParam, batch_model>(dynamic, rows, 0);
}

TEST(scalar_dimension_layout, plans_for_the_limit) {
  const auto dynamic = isotope::plan_inference<reference_f32>(rows_model{isotope::scalar_dim{limit, 2}});
  const auto fixed = isotope::plan_inference<reference_f32>(rows_model{limit});
  ASSERT_TRUE(dynamic.ok() && fixed.ok());
  EXPECT_EQ(dynamic->totals.region, fixed->totals.region);
  EXPECT_EQ(dynamic->steps.size(), fixed->steps.size());
}
TEST(scalar_dimension_layout, stops_at_the_limit_when_more_is_asked) {
  auto dynamic = forward<reference_f32>(rows_model{isotope::scalar_dim{limit, 2}});
  auto x = scalars();
  x.sizes[2] = 1000;
  dynamic.run(x, isotope::phase_always);
  auto fixed = forward<reference_f32>(rows_model{limit});
  fixed.run(scalars(), isotope::phase_always);
  EXPECT_TRUE(same_bytes<float>(*dynamic.output<float>("output"), *fixed.output<float>("output")));
}

struct rows_loss {
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    return mean(square(rows_model{isotope::scalar_dim{limit, 2}}(s)));
  }
};
TEST(scalar_dimension_layout, is_refused_in_training) {
  const auto plan = isotope::plan_training<reference_f32>(rows_loss{});
  ASSERT_FALSE(plan.ok());  // gradients sum over all rows, so rows beyond the actual size would count
  EXPECT_NE(plan.error().line().find("has a size known late: train with constant sizes"), std::string::npos) << plan.error().line();
}

}  // namespace scalar_dimension_test
