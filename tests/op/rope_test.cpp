#include "harness.hpp"

namespace isotope::op_test {
namespace rope_test {

class rope : public op_test {};
INSTANTIATE_TEST_SUITE_P(, rope, everywhere(), target_name);

attributes from(std::int64_t first, int direction = 1, double base = 10000) {
  return op::rope::constants{.first = first, .direction = direction, .base = base};
}
TEST_P(rope, rotates_pairs_of_halves_by_position_at_awkward_sizes) {
  const auto& here = *this;
  const std::int64_t sizes[][4] = {{1, 1, 1, 2}, {2, 3, 5, 4}, {1, 67, 2, 6}, {2, 4, 1, 64}, {1, 2, 3, 0}, {0, 2, 1, 4}};
  for (const auto& [B, S, H, D] : sizes) {
    const host x = random({B, S, H, D}, here.type, 1);
    auto expected = x.at;
    for (std::int64_t row = 0; row < B * S * H; ++row)
      for (std::int64_t d = 0; d < D / 2; ++d) {
        const long double t = (1000.0L + static_cast<long double>(row / H % S)) *
                              std::pow(10000.0L, -2.0L * static_cast<long double>(d) / static_cast<long double>(D));
        const double c = double(std::cos(t)), s = double(std::sin(t)), a = x[row * D + d], b = x[row * D + d + D / 2];
        expected[std::size_t(row * D + d)] = a * c - b * s;
        expected[std::size_t(row * D + d + D / 2)] = b * c + a * s;
      }
    // Angles are up to 1067, so their f64 rounding errors are multiplied by that; then there are three roundings of products of at most 2.
    EXPECT_TRUE(near(here.run<op::rope>({x}, from(1000)).at(0), expected, here.roundings(3) * 4 + 4 * 1067 * 0x1p-50));
  }
}
TEST_P(rope, the_inverse_undoes_the_rotation) {
  const auto& here = *this;
  const host x = random({2, 9, 3, 8}, here.type, 1);
  const auto y = here.run<op::rope>({x}, from(5));
  EXPECT_TRUE(near(here.run<op::rope>({y.at(0)}, from(5, -1)).at(0), x.at, 8 * roundoff(here.type)));  // |y| <= 4, rounded twice
}
TEST_P(rope, position_zero_is_the_identity_and_nan_stays_in_its_pair) {
  const auto& here = *this;
  const host x({1, 1, 1, 4}, here.type, {nan, 1, 2, -3});
  EXPECT_TRUE(same(here.run<op::rope>({x}, from(0)).at(0), {nan, 1, nan, -3}));
}
TEST_P(rope, rows_with_positions_are_those_of_a_sequence_there_and_other_heads_are_copied) {
  const auto& here = *this;
  constexpr std::int64_t S = 1500, H = 3;
  for (const std::int64_t D : {6, 32}) {
    host x = random({1, S, H, D}, here.type, 1);
    for (std::int64_t d = 0; d < D; d += 3) x.at[std::size_t((7 * H + 2) * D + d)] = nan;  // in a head that is copied
    const rope_scaling scaling{.context = 64, .factor = 8, .low = 1, .high = 4};
    const auto sequence = here.run<op::rope>({x}, op::rope::constants{.heads = 2, .base = 500, .scaling = scaling}).at(0);
    const std::vector<double> at{1499, 0, 7, 64, 7, 1024};
    host rows = full({1, std::int64_t(at.size()), H, D}, here.type, 0);
    std::vector<double> expected(rows.at.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      const std::size_t from = std::size_t(at[k / std::size_t(H * D)]) * std::size_t(H * D) + k % std::size_t(H * D);
      rows.at[k] = x.at[from];
      expected[k] = sequence[std::int64_t(from)];
    }
    const host positions{{std::int64_t(at.size())}, dtype::i32, at};
    const auto y = here.run<op::rope>({rows, positions}, op::rope::constants{.heads = 2, .base = 500, .scaling = scaling}).at(0);
    EXPECT_TRUE(near(y, expected, here.roundings(3) * 4 + 8 * roundoff(here.type)));  // either may be off by four roundings of a pair
    for (std::int64_t k = 0; k < std::int64_t(expected.size()); ++k)
      if (k / D % H == 2) { EXPECT_TRUE(y[k] == rows[k] || (std::isnan(y[k]) && std::isnan(rows[k]))) << k; }
  }
}

}  // namespace rope_test
}  // namespace isotope::op_test
