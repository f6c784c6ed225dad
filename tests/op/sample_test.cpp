#include "harness.hpp"

#include <isotope/generate/sampling.hpp>

#include <cmath>

namespace isotope::op_test {
namespace sample_test {

class sample : public op_test {};
INSTANTIATE_TEST_SUITE_P(, sample, everywhere(), target_name);

/// N rows of one vocabulary with a history of T tokens, of which the first position + 1 are there.
struct problem {
  std::int64_t N, V, T, K;
  host history, recent, position, logits, draw, sampling, key;
  problem(dtype type, dtype accum, std::int64_t rows, std::int64_t vocab, std::int64_t context, std::int64_t kept)
      : N(rows),
        V(vocab),
        T(context),
        K(kept),
        history(full({N, T}, dtype::i32, 0)),
        recent(full({K, N}, dtype::i32, -7)),
        position(full({N}, dtype::i32, 0)),
        logits(random({N, V}, type, 3)),
        draw(full({N}, dtype::i32, 0)),
        sampling(full({N, 4}, accum, 1)),
        key(full({N, 4}, dtype::i32, 0)) {}
  void set(std::int64_t n, const sampling_options& o, std::int32_t offset = 0) {
    float numbers[4];
    std::int32_t keys[4];
    write_options(o, offset, numbers, keys);
    for (std::size_t k = 0; k < 4; ++k) {
      sampling.at[std::size_t(n) * 4 + k] = double(numbers[k]);
      key.at[std::size_t(n) * 4 + k] = keys[k];
    }
  }
  std::vector<float> row(std::int64_t n) const {
    std::vector<float> r;
    for (std::int64_t t = 0; t < V; ++t) r.push_back(float(logits[n * V + t]));
    return r;
  }
  std::vector<host> run(const op_test& here) const {
    return here.run<op::sample>({history, recent, position, logits, draw, sampling, key});
  }
};

TEST_P(sample, draws_what_the_host_draws_ten_thousand_times_and_appends_it) {
  problem p(type, accum, 500, 40, 6, 2);
  const sampling_options rules[] = {{},
                                    {.temperature = 0.7f},
                                    {.top_k = 5},
                                    {.top_p = 0.8f},
                                    {.min_p = 0.2f},
                                    {.temperature = 1.3f, .top_k = 20, .top_p = 0.9f, .min_p = 0.05f, .repetition_penalty = 1.5f},
                                    {.repetition_penalty = 2},
                                    {.temperature = 0, .repetition_penalty = 3},
                                    {.temperature = 0}};
  for (std::int64_t i = 0; i < p.N * p.T; ++i) p.history.at[std::size_t(i)] = double((i * 7) % p.V);
  int draws = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::int32_t> want;
    for (std::int64_t n = 0; n < p.N; ++n) {
      sampling_options o = rules[std::size_t(n) % std::size(rules)];
      o.seed = std::uint64_t(n) << 20 | std::uint64_t(round);
      p.set(n, o, std::int32_t(n % 3) - 1);
      const auto at = std::int32_t((n + round) % p.T);
      p.position.at[std::size_t(n)] = at;
      std::vector<std::int32_t> seen;
      for (std::int32_t i = 0; i <= at; ++i) seen.push_back(std::int32_t(p.history[n * p.T + i]));
      want.push_back(drawn_token(p.row(n), seen, o, std::uint32_t(at + 1 + n % 3 - 1)));
    }
    const auto y = p.run(*this);
    for (std::int64_t n = 0; n < p.N; ++n, ++draws) {
      const auto at = std::int64_t(p.position[n]);
      ASSERT_EQ(y[1][n], want[std::size_t(n)]) << "row " << n << ", round " << round;
      EXPECT_EQ(y[1][p.N + n], p.recent[n]);
      EXPECT_EQ(y[2][n], double(at + 1));
      for (std::int64_t i = 0; i < p.T; ++i)
        EXPECT_EQ(y[0][n * p.T + i], i == at + 1 ? double(want[std::size_t(n)]) : p.history[n * p.T + i]);
    }
  }
  EXPECT_EQ(draws, 10000);
}
TEST_P(sample, a_row_is_drawn_alike_in_any_place_beside_any_rows_and_idle_rows_stay) {
  problem all(type, accum, 9, 300, 5, 1);
  for (std::int64_t n = 0; n < all.N; ++n) all.set(n, {.temperature = 0.9f, .top_k = n % 2 == 0 ? 0 : 50, .seed = 11});
  all.draw.at[4] = -1;
  all.position.at[5] = 5;
  const auto y = all.run(*this);
  EXPECT_EQ(y[2][4], 0);
  EXPECT_EQ(y[1][4], -7);
  EXPECT_EQ(y[2][5], 5);
  EXPECT_EQ(y[1][5], -7);
  for (std::int64_t n = 0; n < all.N; ++n) {
    if (n == 4 || n == 5) continue;
    problem one(type, accum, 1, 300, 5, 1);
    one.set(0, {.temperature = 0.9f, .top_k = n % 2 == 0 ? 0 : 50, .seed = 11});
    std::copy_n(all.logits.at.begin() + n * all.V, all.V, one.logits.at.begin());
    EXPECT_EQ(one.run(*this)[1][0], y[1][n]) << n;
  }
}
/// 20,000 draws of 8 tokens: the sum of (observed - expected)^2 / expected has 7 degrees of freedom; it exceeds 29.9 once in ten thousand times.
TEST_P(sample, follows_the_distribution) {
  problem p(type, accum, 2000, 8, 2, 1);
  const double logits[] = {0, 1, -1, 0.5, 2, -2, 1.5, 0};
  for (std::int64_t i = 0; i < p.N * p.V; ++i) p.logits.at[std::size_t(i)] = logits[i % 8];
  double seen[8] = {}, total = 0;
  for (const double x : logits) total += std::exp(x / 1.5);
  for (int round = 0; round < 10; ++round) {
    for (std::int64_t n = 0; n < p.N; ++n)
      p.set(n, {.temperature = 1.5f, .seed = 5}, std::int32_t(round * p.N + n));  // one seed, many places
    const auto y = p.run(*this);
    for (std::int64_t n = 0; n < p.N; ++n) seen[std::size_t(y[1][n])] += 1;
  }
  double off = 0;
  for (std::size_t t = 0; t < 8; ++t) {
    const double wanted = 20000 * std::exp(logits[t] / 1.5) / total;
    off += (seen[t] - wanted) * (seen[t] - wanted) / wanted;
  }
  EXPECT_TRUE(off <= 29.9) << off;
}
TEST_P(sample, one_likeliest_token_is_the_greedy_one_and_ties_go_to_the_lowest_id) {
  problem p(type, accum, 4, 70, 2, 1);
  for (std::int64_t n = 0; n < 4; ++n) {
    p.logits.at[std::size_t(n * 70 + 60 - n)] = p.logits.at[std::size_t(n * 70 + 20 + n)] = 5;
    p.set(n, n == 0   ? sampling_options{.temperature = 0}
             : n == 1 ? sampling_options{.top_k = 1}
             : n == 2 ? sampling_options{.top_p = 0}
                      : sampling_options{.temperature = 0, .top_k = 3, .top_p = 0.5f});
  }
  const auto y = p.run(*this);
  for (std::int64_t n = 0; n < 4; ++n) EXPECT_EQ(y[1][n], double(20 + n));
}
TEST_P(sample, nan_and_minus_infinity_are_not_drawn) {
  problem p(type, accum, 3, 9, 2, 1);
  for (std::int64_t i = 0; i < 27; ++i) p.logits.at[std::size_t(i)] = i % 2 == 0 ? nan : -infinity;
  p.logits.at[9 + 6] = -80;
  p.logits.at[18 + 2] = -80;
  for (std::int64_t n = 0; n < 3; ++n) p.set(n, {.temperature = n == 2 ? 0.0f : 1.0f, .seed = 3});
  const auto y = p.run(*this);
  EXPECT_EQ(y[1][0], 0);
  EXPECT_EQ(y[1][1], 6);
  EXPECT_EQ(y[1][2], 2);
}

}  // namespace sample_test
}  // namespace isotope::op_test
