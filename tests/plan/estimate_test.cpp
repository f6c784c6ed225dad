/// Predicted times of small plans, from figures that no device has, against times that were worked out by hand.
#include "outcome.hpp"

#include <isotope/calibrate/estimate.hpp>
#include <isotope/model/all.hpp>
#include <isotope/op/all.hpp>

using namespace plan_test;

namespace estimate_test {

using T = reference_f32;
using isotope::bound;
using isotope::provenance;
using isotope::quantity;

template <class F> struct model_of {
  isotope::shape dims;
  F f;
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    return f(s.param("w", dims, isotope::init::normal(1)));
  }
};
/// The plan of f(w), w of shape `dims`.
template <class F> isotope::dynamic_plan planned_for(const isotope::shape& dims, const F& f) {
  auto p = isotope::plan_inference<T>(model_of<F>{dims, f});
  EXPECT_TRUE(p.ok()) << p.error().line();
  return *std::move(p);
}

/// 1 GFLOP/s, 1 GB/s and so on: each figure another one, so that none can stand for another.
isotope::calibration figures() {
  isotope::calibration c;
  c.measured(quantity::product_small, 1e9), c.measured(quantity::product_large, 1e9);
  c.measured(quantity::rows, 8e9), c.measured(quantity::rows_8, 2e9), c.measured(quantity::few_rows, 7e-6);
  c.measured(quantity::attention, 3e9), c.measured(quantity::attention_grad, 4e9);
  c.measured(quantity::stream_small, 1e9), c.measured(quantity::stream_large, 1e9);
  c.measured(quantity::heavy, 1e8), c.measured(quantity::random, 1e7);
  c.measured(quantity::launch, 1e-6), c.measured(quantity::barrier, 2e-6);
  c.measured(quantity::round_trip, 1e-3), c.measured(quantity::readback, 5e9);
  return c;
}

/// The estimate of all steps of one op, without the round trip.
isotope::time_estimate of_op(const isotope::plan_view& p, const isotope::op_info& op, const isotope::calibration& c) {
  isotope::time_estimate sum;
  int steps = 0;
  for (const auto& s : p.steps)
    if (s.op == &op) sum.add(estimate(p, s, c), 1), ++steps;
  EXPECT_GT(steps, 0) << op.name;
  return sum;
}
void expect_parts(const isotope::time_estimate& e, double products, double bytes, double functions, double launch) {
  const std::array wanted = {products, bytes, functions, launch};
  for (std::size_t k = 0; k < wanted.size(); ++k) EXPECT_NEAR(e.parts[k], wanted[k], 1e-12) << isotope::bound_names[k];
  EXPECT_NEAR(e.seconds(), products + bytes + functions + launch, 1e-12);
}

/// w w^T of w (M, 32): 64 M^2 operations, and 4 (2 * 32 M + M^2) bytes, as both operands count.
isotope::dynamic_plan square_product(std::int64_t M) {
  return planned_for({M, 32}, [](auto w) { return isotope::matmul(w, isotope::transpose(w)); });
}
TEST(estimate, of_a_product_is_its_operations_over_the_rate_or_its_bytes_over_the_bandwidth) {
  const auto& matmul = isotope::info<isotope::op::matmul>;
  const auto p = square_product(16);  // 16,384 operations, 5,120 bytes
  auto c = figures();
  const auto e = of_op(p, matmul, c);
  EXPECT_EQ(e.flops, 16384);
  EXPECT_EQ(e.bytes, 5120);
  expect_parts(e, 16.384e-6, 0, 0, 3e-6);
  EXPECT_EQ(e.limit(), bound::matrix_rate);
  c.measured(quantity::product_small, 1e10), c.measured(quantity::product_large, 1e10);
  expect_parts(of_op(p, matmul, c), 0, 5.12e-6, 0, 3e-6);
  EXPECT_EQ(of_op(p, matmul, c).limit(), bound::bandwidth);
}
TEST(estimate, of_a_product_has_what_a_small_one_took_longer_than_the_rate_of_a_large_one) {
  auto c = figures();
  c.measured(quantity::product_small, 5e8);  // 512^3 took 2^28 / 5e8 s, 2^28 / 1e9 s longer
  expect_parts(of_op(square_product(16), isotope::info<isotope::op::matmul>, c), 16.384e-6 + double(1 << 28) / 1e9, 0, 0, 3e-6);
}
TEST(estimate, of_a_product_of_few_rows_is_its_bytes_over_the_rate_of_rows) {
  // w w^T with 8 rows: 8 x 8 elements of the result, 4 (2 * 256 + 64) bytes; with one row 4 (2 * 32 + 1) bytes, with two 4 (2 * 64 + 4).
  expect_parts(of_op(square_product(8), isotope::info<isotope::op::matmul>, figures()), 0, 2304 / 2e9 + 7e-6, 0, 3e-6);
  expect_parts(of_op(square_product(1), isotope::info<isotope::op::matmul>, figures()), 0, 260 / 8e9, 0, 3e-6);
  expect_parts(of_op(square_product(2), isotope::info<isotope::op::matmul>, figures()), 0, 528 / 8e9 * 6 / 7 + (528 / 2e9 + 7e-6) / 7, 0,
               3e-6);
}
TEST(estimate, of_attention_to_caches_counts_the_positions_that_hold_tokens) {
  const auto p = isotope::plan_inference<T>([](auto s) {
    const auto q = s.param("q", {2, 32}, isotope::init::ones), cache = s.param("cache", {2, 4, 16, 8}, isotope::init::ones);
    const auto ids = s.input("ids", {2}, isotope::dtype::i32);
    return isotope::attention_cached(q, cache, cache, ids, ids, 4);
  });
  ASSERT_TRUE(p.ok()) << p.error().line();
  auto c = figures();
  c.measured(quantity::attention, 1e15);
  constexpr double row = 2 * 32 * 4, cached = 2 * 4 * 16 * 8 * 4, ids = 2 * 2 * 4;  // bytes of the queries, of one cache, of ids
  for (const double share : {1.0, 0.25}) {
    isotope::time_estimate e;
    for (const auto& s : p->steps)
      if (s.op == &isotope::info<isotope::op::attention_cached>) e.add(estimate(*p, s, c, share), 1);
    expect_parts(e, 0, (2 * row + ids + share * 2 * cached) / 1e9, 0, 3e-6);
    EXPECT_EQ(e.flops, std::int64_t(4 * 2 * 32 * 16 * share));
  }
  const auto& of = isotope::info<isotope::op::attention_cached>;
  c.measured(quantity::stream_large, 1e8);  // though all fits what stream_small was measured with
  expect_parts(of_op(*p, of, c), 0, (2 * row + ids + 2 * cached) / 1e8, 0, 3e-6);
  c.measured(quantity::attention, 1e6);
  expect_parts(of_op(*p, of, c), 4 * 2 * 32 * 16 / 1e6, 0, 0, 3e-6);
}
TEST(estimate, of_attention_counts_the_numbers_that_it_drops_by) {
  constexpr double pairs = 2 * 4 * (50.0 * 51 / 2), forward = 4 * 8 * pairs, backward = 10 * 8 * pairs;  // batches, heads; operations
  const auto of = [&](double dropout) {
    return planned<T>([=](auto s) {
      const auto w = s.param("w", {2, 50, 3 * 4 * 8}, isotope::init::normal(1));
      return isotope::mean(isotope::square(isotope::attention(w, 4, {.causal = true, .dropout = dropout})));
    });
  };
  const auto& y = isotope::info<isotope::op::attention>;
  const auto& dx = isotope::info<isotope::op::attention_grad>;
  expect_parts(of_op(of(0), y, figures()), forward / 3e9, 0, 0, 3e-6);
  expect_parts(of_op(of(0), dx, figures()), backward / 4e9, 0, 0, 3e-6);
  expect_parts(of_op(of(0.5), y, figures()), forward / 3e9, 0, pairs / 1e7, 3e-6);
  expect_parts(of_op(of(0.5), dx, figures()), backward / 4e9, 0, pairs / 1e7, 3e-6);
}
TEST(estimate, of_attention_over_packed_texts_is_that_of_texts_of_one_length) {
  const auto p = isotope::plan_inference<T>([](auto s) {
    const auto w = s.param("w", {64, 32}, isotope::init::ones);
    return isotope::attention_packed(w, w, w, s.input("starts", {3}, isotope::dtype::i32), 4);
  });
  ASSERT_TRUE(p.ok()) << p.error().line();
  expect_parts(of_op(*p, isotope::info<isotope::op::attention_packed>, figures()), 4 * 64 * 32 * (64.0 / 2) / 3e9, 0, 0, 3e-6);
}
TEST(estimate, of_functions_of_elements_is_added_to_that_of_their_bytes) {
  const auto& bodies = isotope::info<isotope::op::elementwise>;
  const isotope::shape dims{4, 8};  // read and written: 256 bytes
  expect_parts(of_op(planned_for(dims, [](auto w) { return isotope::gelu(w); }), bodies, figures()), 0, 256e-9, 32 / 1e8, 3e-6);
  expect_parts(of_op(planned_for(dims, [](auto w) { return isotope::exp(isotope::sin(w)); }), bodies, figures()), 0, 256e-9, 64 / 1e8,
               3e-6);
  expect_parts(of_op(planned_for(dims, [](auto w) { return isotope::relu(w); }), bodies, figures()), 0, 256e-9, 0, 3e-6);
  expect_parts(of_op(planned_for(dims, [](auto w) { return isotope::softmax(w); }), isotope::info<isotope::op::softmax>, figures()), 0,
               256e-9, 32 / 1e8, 3e-6);
  const auto dropped = planned<T>([&](auto s) { return isotope::mean(isotope::dropout(s.param("w", dims, isotope::init::ones), 0.5)); });
  isotope::time_estimate once = of_op(dropped, isotope::info<isotope::op::dropout>, figures());
  expect_parts(once, 0, 2 * 256e-9, 2 * 32 / 1e7, 2 * 3e-6);  // forward and backward
  static_assert(!isotope::calibrate_detail::is_heavy(&isotope::info<isotope::op::expand>), "it has a name like that of exp");
}
TEST(estimate, of_an_embedding_counts_the_rows_that_it_reads) {
  const auto p = isotope::plan_inference<T>(
      [](auto s) { return isotope::embedding(s.param("w", {1000, 8}, isotope::init::ones), s.input("ids", {4}, isotope::dtype::i32)); });
  ASSERT_TRUE(p.ok()) << p.error().line();
  expect_parts(of_op(*p, isotope::info<isotope::op::embedding>, figures()), 0, 2 * 4 * 8 * 4 * 1e-9, 0, 3e-6);
}
TEST(estimate, takes_the_bandwidth_between_both_measurements_by_the_logarithm_of_bytes) {
  auto c = figures();
  c.measured(quantity::stream_large, 4e9);
  for (const auto& [bytes, rate] : {std::pair<double, double>{1, 1e9}, {1 << 20, 1e9}, {8 << 20, 2e9}, {64 << 20, 4e9}, {1e12, 4e9}})
    EXPECT_NEAR(isotope::calibrate_detail::stream(c, bytes), rate, 1) << bytes;
}
TEST(estimate, of_a_plan_is_that_of_its_steps_and_one_round_trip) {
  constexpr isotope::model::gpt size{1, 2, 16, 12, 8};
  const auto p = planned<T>(isotope::model::gpt_loss_of{size, 2, 4}, {.accumulate = true});
  isotope::time_estimate sum;
  for (const auto& s : p.steps) sum.add(estimate(p, s, figures()), 1);
  const auto one = estimate(p, figures()), two = estimate(p, figures(), {.micro_batches = 2}),
             three = estimate(p, figures(), {.micro_batches = 3});
  EXPECT_NEAR(one.seconds(), sum.seconds() + 1e-3, 1e-9);
  EXPECT_EQ(one.flops, isotope::flops_of(p));
  EXPECT_EQ(three.flops, isotope::flops_of(p, 3));
  EXPECT_NEAR(estimate(p, figures(), {.micro_batches = 5}).seconds() - two.seconds(), 3 * (three.seconds() - two.seconds()), 1e-9);
  const auto joined = estimate(p, figures(), {.launches = 3});
  const double inside = double(p.steps.size() - 3), share = isotope::inner_step;  // steps that share a launch with another one
  EXPECT_NEAR(joined.parts[std::size_t(bound::launch)], (3 + share * inside) * 3e-6 + 1e-3, 1e-12);
  EXPECT_NEAR(joined.seconds(), one.seconds() - (1 - share) * inside * 3e-6, 1e-12);
  EXPECT_NEAR(share_of_matrix_rate(one, 1e-3, figures()), double(one.flops) / 1e-3 / 1e9, 1e-9);
}
TEST(estimate, says_the_weakest_provenance_of_the_figures_that_it_used) {
  const auto p = square_product(16);
  auto c = figures();
  EXPECT_EQ(estimate(p, c).from, provenance::measured);
  c[quantity::attention].from = c[quantity::heavy].from = provenance::none;  // this plan uses neither
  EXPECT_EQ(estimate(p, c).from, provenance::measured);
  c[quantity::product_large].from = provenance::architecture_default;
  EXPECT_EQ(estimate(p, c).from, provenance::architecture_default);
  const auto nothing = estimate(p, isotope::calibration{});
  EXPECT_EQ(nothing.from, provenance::none);
  EXPECT_EQ(nothing.seconds(), 0);
}

}  // namespace estimate_test
