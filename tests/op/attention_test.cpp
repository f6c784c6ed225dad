// labels: vulkan_subgroups
#include "harness.hpp"

#include "attention_problem.hpp"

namespace isotope::op_test {
namespace {

template <class C> class attention : public op_test<C> {};
TYPED_TEST_SUITE(attention, everywhere);

using sizes = attention_problem::sizes;
template <class F> attention_problem make(const sizes& z, double scale = 0) { return {z, F::type, F::accum, scale}; }
constexpr sizes cases[] = {{1, 1, 1, 1, 1, 1, true, false},  {2, 7, 7, 3, 3, 5, true, false},   {2, 5, 5, 4, 2, 3, false, false},
                           {1, 3, 8, 4, 1, 2, true, false},  {2, 4, 9, 2, 2, 8, false, true},   {1, 65, 65, 2, 1, 16, true, false},
                           {3, 33, 33, 2, 2, 7, true, true}, {1, 1, 130, 2, 2, 4, true, false}, {1, 9, 11, 2, 1, 67, true, false}};

/// A score sums D products of at most 4; its error passes through exp as a relative error of the weights, of values of at most 2.
/// Beside the roundings of scores and sums: matrix units take the weights rounded to 16 bits. Weights sum to 1, values are at most 2.
template <class F> double forward_error(const sizes& z) {
  return F::roundings(double(2 * z.D + z.T + 8)) * 4 * double(z.D + 2) + 2 * F::rounded_weights;
}

TYPED_TEST(attention, forward_matches_the_definition) {
  using F = TestFixture;
  for (const sizes& z : cases) {
    const auto p = make<F>(z);
    const auto y = F::template run<op::attention>(p.operands(), p.attr);
    const auto expected = attention_by_definition(p);
    ASSERT_EQ(y.size(), 2u);
    EXPECT_TRUE(near(y[0], expected.y, forward_error<F>(z))) << y[0].dims.count();
    EXPECT_TRUE(near(y[1], expected.lse, forward_error<F>(z)));
  }
}
TYPED_TEST(attention, packed_operands_give_the_bits_of_separate_ones) {
  using F = TestFixture;
  for (const sizes& z : cases) {
    if (z.S != z.T) continue;
    const auto p = make<F>(z);
    std::vector<host> packed = {laid_out(p.packed(), {0, 1, 2}, 8)};
    if (z.masked) packed.push_back(p.mask);
    attributes a = p.attr;
    a.i[3] = 1;
    const auto y = F::template run<op::attention>(p.operands(), p.attr), x = F::template run<op::attention>(packed, a);
    EXPECT_TRUE(same(x.at(0), y.at(0).at));
    EXPECT_TRUE(same(x.at(1), y.at(1).at));
  }
}
TYPED_TEST(attention, gradient_matches_the_chain_rule_through_the_whole_matrix) {
  using F = TestFixture;
  for (const sizes& z : cases) {
    const auto p = make<F>(z);
    const host dy = random({z.B, z.S, z.H * z.D}, F::type, 4);
    std::vector<host> in = p.operands();
    const auto y = F::template run<op::attention>(in, p.attr);
    attributes a = p.attr;
    a.f[0] = p.scale;
    in.insert(in.end(), {y.at(0), y.at(1), dy});
    const auto dx = F::template run<op::attention_grad>(in, a);
    const auto expected = attention_by_definition(p, &dy);
    ASSERT_EQ(dx.size(), 3u);
    // y and lse come in rounded: y to its format, in the mean of D products with dy <= 2; lse to the accumulation format, in every weight.
    const double D = double(z.D), S = double(z.S * z.H / z.G);
    const double ds = 2 * D * 2 * roundoff(F::type) + (4 * D) * (forward_error<F>(z) + 8 * roundoff(F::accum) + F::rounded_weights);
    const double dv = 2 * S * (forward_error<F>(z) + 8 * roundoff(F::accum));
    EXPECT_TRUE(near(dx[0], expected.dq, 2 * ds)) << z.S;  // weights sum to 1
    EXPECT_TRUE(near(dx[1], expected.dk, 2 * S * ds)) << z.S;
    EXPECT_TRUE(near(dx[2], expected.dv, dv)) << z.S;
    if (z.S == z.T) {
      std::vector<host> packed = {p.packed()};
      if (z.masked) packed.push_back(p.mask);
      packed.insert(packed.end(), {y[0], y[1], dy});
      a.i[3] = 1;
      const auto d = F::template run<op::attention_grad>(packed, a);
      attention_problem g = p;
      g.q = dx[0], g.k = dx[1], g.v = dx[2];
      EXPECT_TRUE(same(d.at(0), g.packed().at));
    }
  }
}
TYPED_TEST(attention, a_query_whose_keys_are_all_masked_gives_zeros_and_no_gradient) {
  using F = TestFixture;
  auto p = make<F>({2, 3, 3, 2, 2, 4, false, true});
  p.mask.at = {-infinity, -infinity, -infinity, 0, 0, 0};
  const auto y = F::template run<op::attention>({p.q, p.k, p.v, p.mask}, p.attr);
  for (int i = 0; i < 24; ++i) EXPECT_EQ(y.at(0)[i], 0);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(y.at(1)[i], -infinity);
  attributes a = p.attr;
  a.f[0] = p.scale;
  const auto dx = F::template run<op::attention_grad>({p.q, p.k, p.v, p.mask, y[0], y[1], random({2, 3, 8}, F::type, 4)}, a);
  for (int k = 0; k < 3; ++k)
    for (int i = 0; i < 24; ++i) EXPECT_EQ(dx.at(std::size_t(k))[i], 0);
}
TYPED_TEST(attention, large_scores_do_not_overflow_and_nan_stays_in_its_rows) {
  using F = TestFixture;
  auto p = make<F>({1, 2, 2, 1, 1, 1, false, false}, 1);
  p.q.at = {1e4, nan}, p.k.at = {1e4, -1e4}, p.v.at = {1, 2};
  for (host* x : {&p.q, &p.k})
    for (double& v : x->at) v = rounded(F::type, v);
  const auto y = F::template run<op::attention>({p.q, p.k, p.v}, p.attr);
  EXPECT_TRUE(same(y.at(0), {1, nan}));
  EXPECT_TRUE(std::isnan(y.at(1)[1]));
}
TYPED_TEST(attention, no_queries_or_no_batch_is_nothing_to_do) {
  using F = TestFixture;
  for (const sizes& z : {sizes{1, 0, 4, 2, 2, 3, true, false}, sizes{0, 4, 4, 2, 2, 3, true, false}}) {
    const auto p = make<F>(z);
    EXPECT_TRUE(same(F::template run<op::attention>({p.q, p.k, p.v}, p.attr).at(0), {}));
  }
}

}  // namespace
}  // namespace isotope::op_test
