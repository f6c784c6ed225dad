// labels: subgroups
#include "harness.hpp"

namespace isotope::op_test {
namespace categorical_test {

class categorical : public op_test {};
INSTANTIATE_TEST_SUITE_P(, categorical, everywhere(), target_name);

attributes temperature(double t) { return op::categorical::constants{.temperature = t}; }
settings stream(std::uint64_t counter) {
  settings s;
  s.scalars.seed = 42;
  s.scalars.counter = counter;
  s.ordinal = 9;
  return s;
}

TEST_P(categorical, draws_by_the_running_sum_of_the_documented_number) {
  const auto& here = *this;
  for (std::int64_t V : {1, 2, 7, 65, 1000}) {
    const host x = random({23, V}, here.type, 1, -3, 3);
    const auto y = here.run<op::categorical>({x}, temperature(0.8), stream(3));
    ASSERT_EQ(y.at(0).dims, shape{23});
    for (std::int64_t row = 0; row < 23; ++row) {
      const double u = (double(philox(42, std::uint64_t(row / 4), 3, 9)[std::size_t(row % 4)]) + 0.5) / 4294967296.0;
      double total = 0, below = 0;
      for (std::int64_t c = 0; c < V; ++c) total += std::exp(x[row * V + c] / 0.8);
      const auto drawn = std::int64_t(y[0][row]);
      ASSERT_GE(drawn, 0);
      ASSERT_LT(drawn, V);
      for (std::int64_t c = 0; c < drawn; ++c) below += std::exp(x[row * V + c] / 0.8);
      // u is in the interval of the drawn class, up to the rounding of V + 20 operations
      EXPECT_LE(below / total, u + here.roundings(double(V + 20))) << row;
      EXPECT_GE((below + std::exp(x[row * V + drawn] / 0.8)) / total, u - here.roundings(double(V + 20))) << row;
    }
  }
}
TEST_P(categorical, shares_follow_the_probabilities) {
  const auto& here = *this;
  std::vector<double> logits;
  for (int i = 0; i < 4000; ++i) logits.insert(logits.end(), {0, -infinity, rounded(here.type, std::log(3.0))});
  const auto y = here.run<op::categorical>({host({4000, 3}, here.type, logits)}, temperature(1), stream(0));
  double count[3] = {};
  for (double v : y.at(0).at) ++count[std::size_t(v)];
  EXPECT_EQ(count[1], 0);
  // five standard deviations of a binomial count, and the rounding of ln 3 to 16 bits
  EXPECT_NEAR(count[2], 3000, 5 * std::sqrt(4000 * 0.75 * 0.25) + 4000 * 0.01);
}
TEST_P(categorical, a_low_temperature_takes_the_largest_and_large_logits_do_not_overflow) {
  const auto& here = *this;
  const host x({2, 3}, here.type, {1, 3, 2, 0x1p90, -0x1p90, 0});
  EXPECT_TRUE(same(here.run<op::categorical>({x}, temperature(1e-3), stream(1)).at(0), {1, 0}));
}
TEST_P(categorical, no_rows_is_nothing_to_draw) {
  const auto& here = *this;
  EXPECT_TRUE(same(here.run<op::categorical>({full({0, 3}, here.type, 0)}, temperature(1)).at(0), {}));
}

}  // namespace categorical_test
}  // namespace isotope::op_test
