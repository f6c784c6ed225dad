// labels: subgroups
#include "harness.hpp"

#include <isotope/op/cumsum.hpp>

namespace isotope::op_test {
namespace cumsum_test {

class cumsum : public op_test {};
INSTANTIATE_TEST_SUITE_P(, cumsum, everywhere(), target_name);

attributes along(std::int64_t axis, bool reverse = false) { return op::cumsum::constants{.axis = axis, .reverse = reverse}; }
/// The cumulative sums of x and of |x|.
std::pair<std::vector<double>, std::vector<double>> expected(const host& x, int axis, bool reverse) {
  std::int64_t inner = 1;
  for (int k = axis + 1; k < x.dims.rank; ++k) inner *= x.dims[k];
  const std::int64_t n = x.dims[axis];
  std::vector<double> sums(x.at), magnitudes(x.at.size());
  for (std::int64_t i = 0; i < x.dims.count(); ++i) magnitudes[std::size_t(i)] = std::fabs(x[i]);
  for (std::int64_t j = 0; j < x.dims.count(); ++j) {
    const std::int64_t i = reverse ? x.dims.count() - 1 - j : j, k = i / inner % n;
    if (k == (reverse ? n - 1 : 0)) continue;
    const auto before = std::size_t(reverse ? i + inner : i - inner);
    sums[std::size_t(i)] += sums[before];
    magnitudes[std::size_t(i)] += magnitudes[before];
  }
  return {sums, magnitudes};
}
TEST_P(cumsum, sums_up_to_each_element_along_any_axis_both_ways) {
  const auto& here = *this;
  const std::int64_t sizes[][3] = {{1, 1, 1}, {2, 5, 3}, {1, 7, 67}, {3, 1, 64}, {2, 33, 4}, {1, 2, 1031}, {2, 700, 2}};
  for (const auto& [A, B, C] : sizes)
    for (int axis = 0; axis < 3; ++axis)
      for (const bool reverse : {false, true}) {
        const host x = random({A, B, C}, here.type, 1);
        const auto y = here.run<op::cumsum>({x}, along(axis, reverse)).at(0);
        const auto [sums, magnitudes] = expected(x, axis, reverse);
        for (std::int64_t i = 0; i < x.dims.count(); ++i) {
          const double bound = here.roundings(80) * magnitudes[std::size_t(i)] + roundoff(here.type) * std::fabs(sums[std::size_t(i)]);
          ASSERT_LE(std::fabs(y[i] - sums[std::size_t(i)]), bound) << A << ' ' << B << ' ' << C << " axis " << axis << " element " << i;
        }
      }
}
TEST_P(cumsum, whole_numbers_are_summed_exactly) {
  const auto& here = *this;
  const std::int64_t n = 200;  // the sums are integers up to 200, and every format is exact up to 256
  const host x = full({3, n}, here.type, 1);
  std::vector<double> up, down;
  for (std::int64_t i = 0; i < 3 * n; ++i) up.push_back(double(i % n + 1)), down.push_back(double(n - i % n));
  EXPECT_TRUE(same(here.run<op::cumsum>({x}, along(1)).at(0), up));
  EXPECT_TRUE(same(here.run<op::cumsum>({x}, along(1, true)).at(0), down));
}
TEST_P(cumsum, infinities_and_nan_stay_behind_where_they_stand) {
  const auto& here = *this;
  const host x({2, 4}, here.type, {1, infinity, 2, -infinity, 1, nan, 2, 3});
  EXPECT_TRUE(same(here.run<op::cumsum>({x}, along(1)).at(0), {1, infinity, infinity, nan, 1, nan, nan, nan}));
  EXPECT_TRUE(same(here.run<op::cumsum>({x}, along(1, true)).at(0), {nan, nan, -infinity, -infinity, nan, nan, 5, 3}));
}

}  // namespace cumsum_test
}  // namespace isotope::op_test
