#include <isotope/backend/oscillation.hpp>
#include <isotope/backend/session/initial_tensor.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

using isotope::oscillation;

namespace oscillation_test {

std::vector<float> made(std::int64_t n, auto value) {
  std::vector<float> r;
  for (std::int64_t i = 0; i < n; ++i) r.push_back(float(value(i)));
  return r;
}

TEST(oscillation, is_0_for_one_sign_and_1_for_strict_alternation) {
  const auto gentle = made(6 * 50, [](auto i) { return 0.5 + 0.01 * double(i % 7); });
  const auto alternating = made(6 * 50, [](auto i) { return (i % 2 == 0 ? 1 : -1) * (0.5 + 0.01 * double(i % 7)); });
  EXPECT_EQ(oscillation(gentle, {6, 50, 50, 1}), 0);
  EXPECT_NEAR(oscillation(alternating, {6, 50, 50, 1}), 1, 1e-12);
}
// The mean over N rows of K - 1 terms of random sign has a standard deviation below sqrt(3) / sqrt(N (K - 1)), where sqrt(3) is for the magnitudes of normal
// numbers. The bound is five deviations.
TEST(oscillation, of_random_signs_is_0_but_for_chance) {
  for (const std::int64_t K : {8, 64, 768})
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const std::int64_t N = 64;
      std::vector<float> w(std::size_t(N * K));
      isotope::fill_initial(isotope::init::normal(0.02), seed, 1, w);
      EXPECT_TRUE(oscillation(w, {N, K, K, 1}) <= 5 * std::sqrt(3.0 / double(N * (K - 1)))) << K;
    }
}
TEST(oscillation, walks_along_k_in_either_memory_order) {
  // Signs alternate along the first axis of 40 elements, and never along the second.
  const auto w = made(40 * 6, [](auto i) { return i / 6 % 2 == 0 ? 1 : -1; });
  EXPECT_NEAR(oscillation(w, {6, 40, 1, 6}), 1, 1e-12);
  EXPECT_EQ(oscillation(w, {40, 6, 6, 1}), 0);
}
TEST(oscillation, of_zeros_nothing_and_what_is_not_finite_is_0) {
  const std::vector<float> zeros(12, 0), none, wild(12, std::numeric_limits<float>::infinity()), nan(12, std::nanf(""));
  EXPECT_EQ(oscillation(zeros, {3, 4, 4, 1}), 0);
  EXPECT_EQ(oscillation(none, {0, 4, 4, 1}), 0);
  EXPECT_EQ(oscillation(zeros, {12, 1, 1, 1}), 0);
  EXPECT_EQ(oscillation(wild, {3, 4, 4, 1}), 0);
  EXPECT_EQ(oscillation(nan, {3, 4, 4, 1}), 0);
}
TEST(oscillation, between_the_two_is_the_weighted_share_of_changes_less_that_of_the_rest) {
  // Products of neighbours are -2, -2, 4, 4: sign changes weigh 4, the others 8.
  EXPECT_EQ(oscillation(std::vector<float>{1, -2, 1, 4, 1}, {1, 5, 5, 1}), 0);
  // Products of neighbours are -2, -2, -4, 4: sign changes weigh 8, the others 4.
  EXPECT_NEAR(oscillation(std::vector<float>{1, -2, 1, -4, -1}, {1, 5, 5, 1}), 4.0 / 12, 1e-12);
}

}  // namespace oscillation_test
