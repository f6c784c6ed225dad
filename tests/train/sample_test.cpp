#include <isotope/train/sample.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace train = isotope::train;

namespace sample_test {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::vector<int> histogram(const std::vector<float>& logits, train::sample_options o, int draws) {
  std::vector<int> seen(logits.size());
  for (int i = 0; i < draws; ++i) ++seen[std::size_t(train::sample(logits, o, std::uint64_t(i)))];
  return seen;
}

TEST(sample, frequencies_follow_the_softmax) {
  const std::vector<float> logits{std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  const auto seen = histogram(logits, {}, 20000);
  // Binomial: the standard deviation of a count is at most sqrt(20000 / 4) = 71; five of them.
  EXPECT_NEAR(seen[0], 10000, 355);
  EXPECT_NEAR(seen[1], 6000, 355);
  EXPECT_NEAR(seen[2], 4000, 355);
}

TEST(sample, temperature_sharpens_and_zero_is_the_most_likely_with_ties_to_the_smaller_token) {
  const std::vector<float> logits{1, 3, 3, 2};
  EXPECT_EQ(histogram(logits, {0}, 50), (std::vector<int>{0, 50, 0, 0}));
  // At T = 0.5 the odds of token 1 over 0 are e^4: p(0) = e^-4 / (e^-4 + 2 + e^-2) = 0.0085, under T = 1 it is 0.054.
  EXPECT_LT(histogram(logits, {0.5}, 4000)[0], 80);
  EXPECT_GT(histogram(logits, {1.0}, 4000)[0], 120);
}

TEST(sample, top_k_keeps_k_tokens_and_one_is_greedy) {
  const std::vector<float> logits{0, 1, 2, 2, 2};
  const auto two = histogram(logits, {1, 2}, 500);
  EXPECT_EQ(two[0] + two[1] + two[4], 0);
  EXPECT_GT(two[2], 0);
  EXPECT_GT(two[3], 0);
  EXPECT_EQ(histogram(logits, {1, 1}, 20)[2], 20);
  const auto all = histogram(logits, {1, 99}, 2000);
  for (int n : all) EXPECT_GT(n, 0);
}

TEST(sample, top_p_keeps_the_fewest_tokens_that_reach_p_and_always_one) {
  const std::vector<float> logits{std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  EXPECT_EQ(histogram(logits, {1, 0, 0.0}, 50)[0], 50);
  EXPECT_EQ(histogram(logits, {1, 0, 0.49}, 50)[0], 50);
  const auto two = histogram(logits, {1, 0, 0.7}, 2000);
  EXPECT_GT(two[1], 0);
  EXPECT_EQ(two[2], 0);
  EXPECT_GT(histogram(logits, {1, 0, 0.9}, 2000)[2], 0);
}

TEST(sample, the_draw_is_a_function_of_seed_and_position) {
  const std::vector<float> logits(64, 0.0f);
  int same = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const auto a = train::sample(logits, {1, 0, 1, 7}, i);
    EXPECT_EQ(a, train::sample(logits, {1, 0, 1, 7}, i));
    same += a == train::sample(logits, {1, 0, 1, 8}, i);
  }
  EXPECT_LT(same, 20);
}

TEST(sample, nan_and_infinite_logits_do_not_reach_the_result) {
  EXPECT_EQ(histogram({nan, 1, -inf, nan}, {}, 50)[1], 50);
  EXPECT_EQ(histogram({1, inf, 2}, {}, 50)[1], 50);
  EXPECT_EQ(train::sample(std::vector<float>{nan, -inf}, {}, 0), 0);
  EXPECT_EQ(train::sample(std::vector<float>{5}, {1, 0, 0.5}, 3), 0);
}

}  // namespace sample_test
