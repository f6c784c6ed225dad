#include "harness.hpp"

namespace isotope::op_test {
namespace take_along_test {

class take_along : public op_test {};
INSTANTIATE_TEST_SUITE_P(, take_along, everywhere(), target_name);

/// Indices (rows, K) of which some are outside [0, N).
host indices(std::int64_t rows, std::int64_t K, std::int64_t N) {
  host at = full({rows, K}, dtype::i32, 0);
  for (std::size_t i = 0; i < at.at.size(); ++i) at.at[i] = double(std::int64_t((i * i + 3 * i) % std::size_t(N + 2)) - 1);
  return at;
}

TEST_P(take_along, elements_are_copied_and_indices_outside_give_nan_or_zero) {
  const auto& here = *this;
  for (const std::int64_t N : {1, 5, 64})
    for (const bool zeros : {false, true}) {
      const host x = random({3, N}, here.type, 1), at = indices(3, 70, N);
      std::vector<double> expected;
      for (std::int64_t i = 0; i < 210; ++i)
        expected.push_back(at[i] < 0 || at[i] >= double(N) ? (zeros ? 0 : nan) : x[i / 70 * N + std::int64_t(at[i])]);
      EXPECT_TRUE(same(here.run<op::take_along>({x, at}, op::take_along::constants{zeros}).at(0), expected));
    }
}
TEST_P(take_along, updates_are_added_in_ascending_order_bit_for_bit) {
  const auto& here = *this;
  for (const std::int64_t N : {1, 7, 1500}) {
    const host x = random({2, N}, here.type, 1), updates = random({2, 90}, here.accum, 2, -1000, 1000), at = indices(2, 90, N);
    std::vector<double> expected(x.at);
    for (std::int64_t i = 0; i < 180; ++i)
      if (at[i] >= 0 && at[i] < double(N)) {
        double& sum = expected[std::size_t(i / 90 * N + std::int64_t(at[i]))];
        sum = rounded(here.accum, sum + updates[i]);
      }
    for (double& sum : expected) sum = rounded(here.type, sum);
    EXPECT_TRUE(same(here.run<op::scatter_add>({x, updates, at}).at(0), expected));
  }
}
TEST_P(take_along, no_indices_and_no_rows_are_legal) {
  const auto& here = *this;
  EXPECT_TRUE(same(here.run<op::take_along>({random({3, 4}, here.type, 1), full({3, 0}, dtype::i32, 0)}).at(0), {}));
  const host x = random({3, 4}, here.type, 1);
  EXPECT_TRUE(same(here.run<op::scatter_add>({x, full({3, 0}, here.type, 0), full({3, 0}, dtype::i32, 0)}).at(0), x.at));
  EXPECT_TRUE(same(here.run<op::take_along>({full({0, 4}, here.type, 0), full({0, 2}, dtype::i32, 0)}).at(0), {}));
}

}  // namespace take_along_test
}  // namespace isotope::op_test
