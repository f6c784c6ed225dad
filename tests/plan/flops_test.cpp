#include "outcome.hpp"

#include <isotope/model/all.hpp>
#include <isotope/op/all.hpp>
#include <isotope/plan/flops.hpp>

using namespace plan_test;

namespace flops_test {

using T = reference_f32;

std::int64_t flops_of_all(const isotope::plan_view& p, const isotope::op_info& op) {
  std::int64_t n = 0;
  for (const auto& s : p.steps) n += s.op == &op ? isotope::flops_of(p, s) : 0;
  return n;
}

/// A loss that is the mean of f(weights)^2, so that f has a gradient.
template <class F> struct model_of {
  isotope::shape dims;
  F f;
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    return isotope::mean(isotope::square(f(s.param("w", dims, isotope::init::normal(1)))));
  }
};
template <class F> isotope::dynamic_plan trained(const isotope::shape& dims, const F& f) { return planned<T>(model_of<F>{dims, f}); }

std::array<std::int64_t, 2> of_attention(std::int64_t tokens, int window, bool causal) {
  const auto p = trained({2, tokens, 3 * 4 * 8}, [=](auto w) { return isotope::attention(w, 4, {.causal = causal, .window = window}); });
  return {flops_of_all(p, isotope::info<isotope::op::attention>), flops_of_all(p, isotope::info<isotope::op::attention_grad>)};
}
TEST(flops, of_attention_are_those_of_the_pairs_that_are_seen) {
  constexpr std::int64_t n = 50, heads = 2 * 4 * 8;  // batches, heads, their width
  for (const auto& [window, causal, pairs] : {std::tuple{0, true, n * (n + 1) / 2},
                                              {0, false, n * n},
                                              {1, true, n},
                                              {7, true, 7 * 8 / 2 + (n - 7) * 7},
                                              {50, true, n * (n + 1) / 2},
                                              {90, true, n * (n + 1) / 2}}) {
    const auto [forward, backward] = of_attention(n, window, causal);
    EXPECT_EQ(forward, 4 * heads * pairs) << window << ' ' << causal;
    EXPECT_EQ(backward, 10 * heads * pairs) << window << ' ' << causal;
  }
}
TEST(flops, of_products_are_two_for_each_term_and_of_epilogues_one_for_each_element) {
  const auto p = trained({6, 5}, [](auto w) { return isotope::matmul(w, isotope::transpose(w)); });
  EXPECT_EQ(flops_of_all(p, isotope::info<isotope::op::matmul>) % 2, 0);
  std::int64_t products = 0;
  for (const auto& s : p.steps)
    if (s.op == &isotope::info<isotope::op::matmul>) {
      ++products;
      EXPECT_EQ(isotope::flops_of(p, s), 2 * 6 * 6 * 5 + s.body_size * p.operands[std::size_t(s.operands + s.inputs)].dims.count());
    }
  EXPECT_EQ(products, 3);  // y, and the gradients of both factors
}
TEST(flops, of_elementwise_steps_are_one_for_each_instruction_and_element) {
  const auto p = *isotope::plan_inference<T>(model_of{isotope::shape{4, 3}, [](auto w) { return isotope::exp(w) + w; }});
  std::int64_t n = 0;
  for (const auto& s : p.steps)
    if (s.body_size > 0) n += isotope::flops_of(p, s);
  EXPECT_EQ(n, 3 * 12);  // exp, add, square
}
TEST(flops, of_transforms_are_five_n_log_n) {
  const auto p = *isotope::plan_inference<T>(model_of{isotope::shape{3, 16, 2}, [](auto w) { return isotope::fft(w); }});
  EXPECT_EQ(flops_of_all(p, isotope::info<isotope::op::fft>), 3 * 5 * 16 * 4);
  const auto r = *isotope::plan_inference<T>(model_of{isotope::shape{3, 16}, [](auto w) { return isotope::rfft(w); }});
  EXPECT_EQ(flops_of_all(r, isotope::info<isotope::op::rfft>), 3 * 5 * 16 * 4 / 2);
}
// 6 N per token, since a parameter takes one multiply-add forward and two backward; and for attention four forward and ten backward per pair of query and key,
// head and element of the head.
TEST(flops, of_gpt2_are_six_for_each_parameter_and_token_and_those_of_attention) {
  constexpr isotope::model::gpt gpt2 = isotope::model::gpt_sizes[0].size;
  constexpr std::int64_t B = 4, S = 1024;
  const auto p = planned<T>(isotope::model::gpt_loss_of{gpt2, B, S});
  const double expected =
      6 * double(parameter_count(gpt2)) * double(B * S) + 14 * double(B * gpt2.layers * gpt2.width) * double(S * (S + 1) / 2);
  EXPECT_NEAR(double(isotope::flops_of(p)) / expected, 1, 0.01);
}
TEST(flops, of_micro_batches_are_those_of_passes_and_one_update) {
  constexpr isotope::model::gpt size{1, 2, 16, 12, 8};
  const auto p = planned<T>(isotope::model::gpt_loss_of{size, 2, 4}, {.accumulate = true});
  const auto one = isotope::flops_of(p, 1), two = isotope::flops_of(p, 2), five = isotope::flops_of(p, 5);
  EXPECT_EQ(five - two, 3 * (isotope::flops_of(p, 3) - two));
  EXPECT_LT(two, 2 * one);  // the update runs only once
  EXPECT_GT(two, one);
}

}  // namespace flops_test
