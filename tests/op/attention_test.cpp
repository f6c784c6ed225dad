// labels: vulkan_subgroups
#include "harness.hpp"

namespace isotope::op_test {
namespace {

template <class C> class attention : public op_test<C> {};
TYPED_TEST_SUITE(attention, everywhere);

struct sizes {
  std::int64_t B, S, T, H, G, D;
  bool causal, masked;
};
struct problem {
  sizes z;
  host q, k, v, mask;
  attributes attr;
  double scale;
};
template <class F> problem make(const sizes& z, double scale = 0) {
  problem p{z,
            random({z.B, z.S, z.H * z.D}, F::type, 1),
            random({z.B, z.T, z.G * z.D}, F::type, 2),
            random({z.B, z.T, z.G * z.D}, F::type, 3),
            full({z.B, z.T}, F::accum, 0),
            {},
            scale == 0 ? 1 / std::sqrt(double(z.D)) : scale};
  for (std::size_t i = 0; i < p.mask.at.size(); ++i) p.mask.at[i] = i % 3 == 1 ? -infinity : i % 3 == 2 ? 0.25 : 0;
  p.attr.i = {z.H, z.G, z.causal ? 1 : 0, 0, z.masked ? 1 : 0};
  p.attr.f[0] = scale;
  return p;
}
host pack(const problem& p) {
  host x = full({p.z.B, p.z.S, (p.z.H + 2 * p.z.G) * p.z.D}, p.q.type, 0);
  std::size_t n = 0;
  for (std::int64_t row = 0; row < p.z.B * p.z.S; ++row)
    for (const host* part : {&p.q, &p.k, &p.v})
      for (std::int64_t c = 0; c < part->dims[-1]; ++c) x.at[n++] = (*part)[row * part->dims[-1] + c];
  return x;
}

struct results {
  std::vector<double> y, lse, dq, dk, dv;
};
/// The whole matrix of probabilities, and the derivative of sum(y dy) by the chain rule through it.
results definition(const problem& p, const host* dy = nullptr) {
  const auto& [B, S, T, H, G, D, causal, masked] = p.z;
  results r;
  r.y.assign(p.q.at.size(), 0);
  r.dq.assign(p.q.at.size(), 0);
  r.dk.assign(p.k.at.size(), 0);
  r.dv.assign(p.v.at.size(), 0);
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t h = 0; h < H; ++h)
      for (std::int64_t s = 0; s < S; ++s) {
        const auto g = h / (H / G);
        const auto at_q = [&](std::int64_t d) { return std::size_t((b * S + s) * H * D + h * D + d); };
        const auto at_k = [&](std::int64_t t, std::int64_t d) { return std::size_t((b * T + t) * G * D + g * D + d); };
        std::vector<double> e(std::size_t(T), 0);
        double sum = 0;
        for (std::int64_t t = 0; t < T; ++t) {
          if (causal && t > s + T - S) continue;
          double score = 0;
          for (std::int64_t d = 0; d < D; ++d) score += p.q.at[at_q(d)] * p.k.at[at_k(t, d)];
          e[std::size_t(t)] = std::exp(p.scale * score + (masked ? p.mask[b * T + t] : 0));
          sum += e[std::size_t(t)];
        }
        r.lse.push_back(std::log(sum));
        if (sum == 0) continue;
        double mean = 0;
        std::vector<double> dp(std::size_t(T), 0);
        for (std::int64_t t = 0; t < T; ++t)
          for (std::int64_t d = 0; d < D; ++d) {
            const double share = e[std::size_t(t)] / sum;
            r.y[at_q(d)] += share * p.v.at[at_k(t, d)];
            if (dy == nullptr) continue;
            dp[std::size_t(t)] += dy->at[at_q(d)] * p.v.at[at_k(t, d)];
            r.dv[at_k(t, d)] += share * dy->at[at_q(d)];
            mean += share * dy->at[at_q(d)] * p.v.at[at_k(t, d)];
          }
        for (std::int64_t t = 0; t < T; ++t)
          for (std::int64_t d = 0; d < D; ++d) {
            const double ds = e[std::size_t(t)] / sum * (dp[std::size_t(t)] - mean);
            r.dq[at_q(d)] += p.scale * ds * p.k.at[at_k(t, d)];
            r.dk[at_k(t, d)] += p.scale * ds * p.q.at[at_q(d)];
          }
      }
  return r;
}
constexpr sizes cases[] = {{1, 1, 1, 1, 1, 1, true, false},  {2, 7, 7, 3, 3, 5, true, false},   {2, 5, 5, 4, 2, 3, false, false},
                           {1, 3, 8, 4, 1, 2, true, false},  {2, 4, 9, 2, 2, 8, false, true},   {1, 65, 65, 2, 1, 16, true, false},
                           {3, 33, 33, 2, 2, 7, true, true}, {1, 1, 130, 2, 2, 4, true, false}, {1, 9, 11, 2, 1, 67, true, false}};

/// A score sums D products of at most 4; its error passes through exp as a relative error of the weights, of values of at most 2.
template <class F> double forward_error(const sizes& z) { return F::roundings(double(2 * z.D + z.T + 8)) * 4 * double(z.D + 2); }

TYPED_TEST(attention, forward_matches_the_definition) {
  using F = TestFixture;
  for (const sizes& z : cases) {
    const auto p = make<F>(z);
    std::vector<host> in = {p.q, p.k, p.v};
    if (z.masked) in.push_back(p.mask);
    const auto y = F::template run<op::attention>(in, p.attr);
    const auto expected = definition(p);
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
    std::vector<host> apart = {p.q, p.k, p.v}, packed = {laid_out(pack(p), {0, 1, 2}, 3)};
    if (z.masked) apart.push_back(p.mask), packed.push_back(p.mask);
    attributes a = p.attr;
    a.i[3] = 1;
    const auto y = F::template run<op::attention>(apart, p.attr), x = F::template run<op::attention>(packed, a);
    EXPECT_TRUE(same(x.at(0), y.at(0).at));
    EXPECT_TRUE(same(x.at(1), y.at(1).at));
  }
}
TYPED_TEST(attention, gradient_matches_the_chain_rule_through_the_whole_matrix) {
  using F = TestFixture;
  for (const sizes& z : cases) {
    const auto p = make<F>(z);
    const host dy = random({z.B, z.S, z.H * z.D}, F::type, 4);
    std::vector<host> in = {p.q, p.k, p.v};
    if (z.masked) in.push_back(p.mask);
    const auto y = F::template run<op::attention>(in, p.attr);
    attributes a = p.attr;
    a.f[0] = p.scale;
    in.insert(in.end(), {y.at(0), y.at(1), dy});
    const auto dx = F::template run<op::attention_grad>(in, a);
    const auto expected = definition(p, &dy);
    ASSERT_EQ(dx.size(), 3u);
    // y and lse come in rounded: y to its format, in the mean of D products with dy <= 2; lse to the accumulation format, in every weight.
    const double D = double(z.D), S = double(z.S * z.H / z.G);
    const double ds = 2 * D * 2 * roundoff(F::type) + (4 * D) * (forward_error<F>(z) + 8 * roundoff(F::accum));
    const double dv = 2 * S * (forward_error<F>(z) + 8 * roundoff(F::accum));
    EXPECT_TRUE(near(dx[0], expected.dq, 2 * ds)) << z.S;  // weights sum to 1
    EXPECT_TRUE(near(dx[1], expected.dk, 2 * S * ds)) << z.S;
    EXPECT_TRUE(near(dx[2], expected.dv, dv)) << z.S;
    if (z.S == z.T) {
      std::vector<host> packed = {pack(p)};
      if (z.masked) packed.push_back(p.mask);
      packed.insert(packed.end(), {y[0], y[1], dy});
      a.i[3] = 1;
      const auto d = F::template run<op::attention_grad>(packed, a);
      problem g = p;
      g.q = dx[0], g.k = dx[1], g.v = dx[2];
      EXPECT_TRUE(same(d.at(0), pack(g).at));
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
