// labels: subgroups
#include "harness.hpp"

#include "attention_checks.hpp"

namespace isotope::op_test {
namespace attention_test {

class attention : public op_test {};
INSTANTIATE_TEST_SUITE_P(, attention, everywhere_with_native(), target_name);

constexpr sizes cases[] = {{1, 1, 1, 1, 1, 1, true, false},   {2, 7, 7, 3, 3, 5, true, false},   {2, 5, 5, 4, 2, 3, false, false},
                           {1, 3, 8, 4, 1, 2, true, false},   {2, 4, 9, 2, 2, 8, false, true},   {1, 65, 65, 2, 1, 16, true, false},
                           {3, 33, 33, 2, 2, 7, true, true},  {1, 1, 130, 2, 2, 4, true, false}, {1, 9, 11, 2, 1, 67, true, false},
                           {1, 70, 140, 2, 1, 72, true, true}};

// Windows of one key, of less than a tile, of a tile, of other sizes, of several tiles, and of all keys and more. With many past keys, no query attends to
// the first ones.
constexpr sizes window_cases[] = {
    {2, 7, 7, 3, 3, 5, true, false, 1},     {1, 65, 65, 2, 1, 16, true, false, 5},    {1, 130, 130, 2, 2, 4, true, false, 64},
    {2, 33, 33, 2, 2, 7, true, true, 16},   {1, 150, 150, 2, 1, 20, true, false, 70}, {1, 3, 8, 4, 1, 2, true, false, 2},
    {1, 70, 300, 2, 1, 16, true, true, 40}, {1, 5, 5, 2, 2, 3, true, false, 5},       {1, 9, 11, 2, 1, 67, true, false, 12}};

constexpr sizes dropping_cases[] = {{2, 7, 7, 3, 3, 5, true, false},        {2, 5, 5, 4, 2, 3, false, false},
                                    {2, 4, 9, 2, 2, 8, false, true},        {1, 65, 65, 2, 1, 16, true, false},
                                    {3, 33, 33, 2, 2, 7, true, true},       {1, 9, 11, 2, 1, 67, true, false},
                                    {1, 97, 130, 2, 1, 8, true, false, 37}, {1, 40, 70, 2, 2, 40, false, false}};

TEST_P(attention, forward_matches_the_definition) {
  const auto& here = *this;
  for (const sizes& z : cases) {
    const auto p = make(here, z);
    const auto y = here.run<op::attention>(p.operands(), p.attr);
    const auto expected = attention_by_definition(p);
    ASSERT_EQ(y.size(), 2u);
    EXPECT_TRUE(near(y[0], expected.y, forward_error(here, z))) << y[0].dims.count();
    EXPECT_TRUE(near(y[1], expected.lse, forward_error(here, z)));
  }
}
TEST_P(attention, packed_operands_give_the_bits_of_separate_ones) {
  const auto& here = *this;
  for (const sizes& z : cases) {
    if (z.S != z.T) continue;
    const auto p = make(here, z);
    std::vector<host> packed = {laid_out(p.packed(), {0, 1, 2}, 8)};
    if (z.masked) packed.push_back(p.mask);
    auto a = p.attr;
    a.packed = true;
    const auto y = here.run<op::attention>(p.operands(), p.attr), x = here.run<op::attention>(packed, a);
    EXPECT_TRUE(same(x.at(0), y.at(0).at));
    EXPECT_TRUE(same(x.at(1), y.at(1).at));
  }
}
TEST_P(attention, gradient_matches_the_chain_rule_through_the_whole_matrix) {
  const auto& here = *this;
  for (const sizes& z : cases) expect_gradient(here, make(here, z));
}
TEST_P(attention, of_a_window_matches_the_definition) {
  const auto& here = *this;
  for (const sizes& z : window_cases) {
    const auto p = make(here, z);
    const auto y = here.run<op::attention>(p.operands(), p.attr);
    const auto expected = attention_by_definition(p);
    EXPECT_TRUE(near(y.at(0), expected.y, forward_error(here, z))) << z.S << ' ' << z.T << ' ' << z.window;
    EXPECT_TRUE(near(y.at(1), expected.lse, forward_error(here, z))) << z.S << ' ' << z.T << ' ' << z.window;
  }
}
TEST_P(attention, gradient_of_a_window_matches_the_chain_rule) {
  const auto& here = *this;
  for (const sizes& z : window_cases) expect_gradient(here, make(here, z));
}
TEST_P(attention, a_window_of_all_keys_gives_the_bits_of_none) {
  const auto& here = *this;
  const sizes all{1, 70, 70, 2, 1, 16, true, false};
  const auto p = make(here, all);
  const auto y = here.run<op::attention>(p.operands(), p.attr);
  for (const std::int64_t window : {std::int64_t(70), std::int64_t(71), std::int64_t(1) << 40}) {
    auto a = p.attr;
    a.window = window;
    const auto x = here.run<op::attention>(p.operands(), a);
    EXPECT_TRUE(same(x.at(0), y.at(0).at)) << window;
    EXPECT_TRUE(same(x.at(1), y.at(1).at)) << window;
  }
}
TEST_P(attention, a_query_whose_keys_are_all_masked_gives_zeros_and_no_gradient) {
  const auto& here = *this;
  auto p = make(here, {2, 3, 3, 2, 2, 4, false, true});
  p.mask.at = {-infinity, -infinity, -infinity, 0, 0, 0};
  const auto y = here.run<op::attention>({p.q, p.k, p.v, p.mask}, p.attr);
  for (int i = 0; i < 24; ++i) EXPECT_EQ(y.at(0)[i], 0);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(y.at(1)[i], -infinity);
  auto a = p.attr;
  a.scale = p.scale;
  const auto dx = here.run<op::attention_grad>({p.q, p.k, p.v, p.mask, y[0], y[1], random({2, 3, 8}, here.type, 4)}, a);
  for (int k = 0; k < 3; ++k)
    for (int i = 0; i < 24; ++i) EXPECT_EQ(dx.at(std::size_t(k))[i], 0);
}
TEST_P(attention, large_scores_do_not_overflow_and_nan_stays_in_its_rows) {
  const auto& here = *this;
  auto p = make(here, {1, 2, 2, 1, 1, 1, false, false}, 1);
  p.q.at = {1e4, nan}, p.k.at = {1e4, -1e4}, p.v.at = {1, 2};
  for (host* x : {&p.q, &p.k})
    for (double& v : x->at) v = rounded(here.type, v);
  const auto y = here.run<op::attention>({p.q, p.k, p.v}, p.attr);
  EXPECT_TRUE(same(y.at(0), {1, nan}));
  EXPECT_TRUE(std::isnan(y.at(1)[1]));
}
TEST_P(attention, no_queries_or_no_batch_is_nothing_to_do) {
  const auto& here = *this;
  for (const sizes& z : {sizes{1, 0, 4, 2, 2, 3, true, false}, sizes{0, 4, 4, 2, 2, 3, true, false}}) {
    const auto p = make(here, z);
    EXPECT_TRUE(same(here.run<op::attention>({p.q, p.k, p.v}, p.attr).at(0), {}));
  }
}

// Every kernel compares the same random words with the same limit, so all kernels drop the same probabilities, and errors are those of the kept ones.
TEST_P(attention, dropped_probabilities_are_those_of_the_documented_words) {
  const auto& here = *this;
  for (const sizes& z : dropping_cases) {
    const auto p = make(here, z).dropping(0.3);
    const auto y = here.run<op::attention>(p.operands(), p.attr, drawing(p));
    const auto expected = attention_by_definition(p);
    EXPECT_TRUE(near(y.at(0), expected.y, forward_error(here, z) / (1 - p.dropout))) << z.S << ' ' << z.T;
    EXPECT_TRUE(near(y.at(1), expected.lse, forward_error(here, z)));  // lse is that of the softmax before dropout
  }
}
TEST_P(attention, gradient_with_dropout_matches_the_chain_rule_through_the_same_words) {
  const auto& here = *this;
  for (const sizes& z : dropping_cases) expect_gradient(here, make(here, z).dropping(0.3));
}
// The heads are those from number `first_head` on of `all_heads` of each batch on all devices.
TEST_P(attention, a_part_of_the_heads_of_all_devices_drops_what_all_of_them_together_drop) {
  const auto& here = *this;
  if (!kernel<op::attention>().counts_all_elements) GTEST_SKIP() << "this backend has no plans for several devices";
  ASSERT_TRUE(kernel<op::attention_grad>().counts_all_elements);
  for (const sizes& z :
       {sizes{2, 7, 7, 3, 3, 5, true, false}, sizes{2, 33, 33, 4, 2, 16, false, true}, sizes{2, 66, 66, 2, 2, 64, true, false}})
    for (const auto& [all, first] : {std::pair{z.H, z.B * z.H}, {3 * z.H, (3 * z.B + 2) * z.H}}) {
      if (all == z.H && z.S > 7) continue;  // replicas, whose heads follow one another
      auto p = make(here, z).dropping(0.3);
      p.attr.all_heads = all;
      p.attr.first_head = first;
      const auto y = here.run<op::attention>(p.operands(), p.attr, drawing(p));
      EXPECT_TRUE(near(y.at(0), attention_by_definition(p).y, forward_error(here, z) / (1 - p.dropout)))
          << z.D << ' ' << all << ' ' << first;
      expect_gradient(here, p);
    }
}
/// All scores are equal and the values identify the keys: y (s, h, t) is 0 if key t is dropped, otherwise 1 / (T (1 - p)).
std::vector<double> shares(const op_test& here, const attention_problem& p) {
  return here.run<op::attention>(p.operands(), p.attr, drawing(p)).at(0).at;
}
attention_problem telling_keys_apart(const op_test& here, double dropout) {
  auto p = make(here, {2, 64, 64, 2, 2, 64, false, false}).dropping(dropout);
  std::fill(p.q.at.begin(), p.q.at.end(), 0);
  for (std::size_t i = 0; i < p.v.at.size(); ++i) p.v.at[i] = i / 128 % 64 == i % 64 ? 1 : 0;
  return p;
}
TEST_P(attention, drops_a_share_of_p_and_the_same_keys_every_time) {
  const auto& here = *this;
  auto p = telling_keys_apart(here, 0.25);
  const auto y = shares(here, p);
  EXPECT_EQ(shares(here, p), y);
  double zeros = 0;
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t s = 0; s < 64; ++s)
      for (std::int64_t h = 0; h < 2; ++h)
        for (std::int64_t t = 0; t < 64; ++t) {
          const double got = y[std::size_t(((b * 64 + s) * 2 + h) * 64 + t)], share = p.share(b, h, s, t);
          ASSERT_EQ(got == 0, share == 0) << b << ' ' << s << ' ' << h << ' ' << t;
          ASSERT_NEAR(got * 64, share, 0.01);  // bf16 keeps 8 bits
          zeros += share == 0 ? 1 : 0;
        }
  const double n = double(y.size());
  EXPECT_NEAR(zeros, n * 0.25, 5 * std::sqrt(n * 0.25 * 0.75));  // five standard deviations of a binomial count
  for (auto change : {+[](attention_problem& x) { x.seed ^= 1; }, +[](attention_problem& x) { x.seed ^= 1ull << 40; },
                      +[](attention_problem& x) { ++x.step; }, +[](attention_problem& x) { ++x.stream; }}) {
    auto other = p;
    change(other);
    EXPECT_NE(shares(here, other), y);
  }
}
TEST_P(attention, dropping_nearly_all_leaves_nothing) {
  const auto& here = *this;
  const auto p = telling_keys_apart(here, 1 - 0x1p-40);  // every 32-bit word is below the limit
  for (const double y : shares(here, p)) ASSERT_EQ(y, 0);
}

TEST(attention_window, is_refused_where_it_is_negative_or_not_causal) {
  for (const auto& [o, text] : {std::pair{attention_options{.window = -1}, "attention: the window is negative: [1,3,12]"},
                                std::pair{attention_options{.causal = false, .window = 4}, "attention: a window needs causal attention"}}) {
    tape t(dtype::f32);
    isotope::attention(tensor<tape>{&t, t.g.add_value({1, 3, 12}, dtype::f32, value_kind::input)}, 2, o);
    EXPECT_NE(std::string(t.g.error.view()).find(text), std::string::npos) << t.g.error.view();
  }
}

const attributes& attributes_of(const tape& t) { return t.g.nodes.back().attr; }
TEST(attention_dropout, is_of_training_programs_alone_and_takes_a_stream_there) {
  for (const bool training : {true, false}) {
    tape t(dtype::f32);
    t.training = training;
    const tensor<tape> x{&t, t.g.add_value({1, 3, 12}, dtype::f32, value_kind::input)};
    isotope::dropout(isotope::attention(x, 2), 0.5);
    EXPECT_EQ(t.g.nodes.back().ordinal, 0u) << "attention that drops nothing took a stream";
    isotope::attention(x, 2, {.dropout = 0.5});
    ASSERT_TRUE(t.ok());
    EXPECT_EQ(op::attention::constants::of(attributes_of(t)).dropout, training ? 0.5 : 0.0);
    EXPECT_EQ(t.g.nodes.back().ordinal, training ? 1u : 0u);
  }
}
TEST(attention_dropout, outside_of_its_range_is_an_error_with_the_number) {
  for (const auto& [p, text] :
       {std::pair{1.5, "attention: dropout 1.5 is not in [0,1)"}, std::pair{1.0, "attention: dropout 1 is not in [0,1)"},
        std::pair{-0.25, "attention: dropout -0.25 is not in [0,1)"}, std::pair{nan, "attention: dropout nan is not in [0,1)"}}) {
    tape t(dtype::f32);
    isotope::attention(tensor<tape>{&t, t.g.add_value({1, 3, 12}, dtype::f32, value_kind::input)}, 2, {.dropout = p});
    EXPECT_NE(std::string(t.g.error.view()).find(text), std::string::npos) << t.g.error.view();
  }
}

}  // namespace attention_test
}  // namespace isotope::op_test
