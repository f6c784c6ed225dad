// labels: subgroups
#include "harness.hpp"

namespace isotope::op_test {
namespace sum_test {

class sum : public op_test {};
INSTANTIATE_TEST_SUITE_P(, sum, everywhere(), target_name);

attributes over(std::int64_t axes, bool keep = false, format_number type = {}) {
  return op::sum::constants{.axes = axes, .keep = keep, .format = type};
}
/// The sums of x over the axes of a mask, in the order of the kept axes.
std::vector<double> total(const host& x, std::int64_t axes) {
  std::vector<double> y;
  std::int64_t kept = 1;
  for (int k = 0; k < x.dims.rank; ++k)
    if (((axes >> k) & 1) == 0) kept *= x.dims[k];
  y.assign(std::size_t(kept), 0);
  for (std::int64_t i = 0; i < x.dims.count(); ++i) {
    std::int64_t rest = i, to = 0, stride = 1;
    for (int k = x.dims.rank - 1; k >= 0; --k) {
      if (((axes >> k) & 1) == 0) to += rest % x.dims[k] * stride, stride *= x.dims[k];
      rest /= x.dims[k];
    }
    y[std::size_t(to)] += x[i];
  }
  return y;
}
const shape shapes[] = {{1}, {67}, {3, 5}, {65, 2}, {2, 3, 4}, {2, 1, 3, 7}, {4, 0, 3}, {}};

TEST_P(sum, sum_and_mean_match_on_every_set_of_axes_and_any_strides) {
  const auto& here = *this;
  for (const shape& s : shapes)
    for (std::int64_t axes = 0; axes < (std::int64_t(1) << s.rank); ++axes)
      for (bool keep : {false, true}) {
        host x = random(s, here.type, 1);
        if (s.rank == 3) x = laid_out(x, {2, 0, 1}, 2);
        const auto expected = total(x, axes);
        const double n = expected.empty() ? 0 : double(s.count()) / double(expected.size());
        auto means = expected;
        for (double& m : means) m /= n;
        const auto y = here.run<op::sum>({x}, over(axes, keep)), m = here.run<op::mean>({x}, over(axes, keep));
        // a sum of n terms of at most 2; for the mean, sum and error are divided by n
        EXPECT_TRUE(near(y.at(0), expected, here.roundings(n) * 2 * n)) << axes;
        EXPECT_TRUE(near(m.at(0), means, here.roundings(n + 2) * 2)) << axes;
        if (keep) { EXPECT_EQ(y[0].dims.rank, s.rank); }
      }
}
TEST_P(sum, the_sum_of_nothing_is_zero_and_the_mean_of_nothing_is_nan) {
  const auto& here = *this;
  const host x = full({2, 0}, here.type, 0);
  EXPECT_TRUE(same(here.run<op::sum>({x}, over(2)).at(0), {0, 0}));
  EXPECT_TRUE(same(here.run<op::mean>({x}, over(2)).at(0), {nan, nan}));
}
TEST_P(sum, the_result_may_have_another_format) {
  const auto& here = *this;
  const host x = random({100, 3}, here.type, 1);
  const auto y = here.run<op::sum>({x}, over(1, false, here.accum));
  ASSERT_EQ(y.at(0).type, here.accum);
  EXPECT_TRUE(near(y[0], total(x, 1), here.roundings(100) * 200));
}
TEST_P(sum, many_equal_terms_do_not_drift) {
  const auto& here = *this;
  const double v = rounded(here.type, 0.1);
  const auto y = here.run<op::sum>({full({100000}, here.type, v)}, over(1));
  // Terms are added in ascending order in f64, otherwise in blocks and a tree.
  EXPECT_TRUE(near(y.at(0), {100000 * v}, (here.exact ? 100000 * 0x1p-53 : 64 * 0x1p-24) * 100000 * v));
}
TEST_P(sum, long_rows_and_columns_lose_nothing) {
  const auto& here = *this;
  for (const shape& s : {shape{2, 2500, 3}, shape{2, 9001, 8}}) {
    const host x = random(s, here.type, 1);
    for (std::int64_t axes : {2, 3, 6}) {
      const auto y = here.run<op::sum>({x}, over(axes));
      const double n = double(x.dims.count()) / double(y.at(0).dims.count());
      EXPECT_TRUE(near(y[0], total(x, axes), here.roundings(std::log2(n) + 64) * 2 * n)) << axes;  // in blocks and a tree
    }
  }
}
TEST_P(sum, infinities_and_nan_show) {
  const auto& here = *this;
  const host x({4, 2}, here.type, {infinity, 1, infinity, -infinity, nan, 1, -0.0, 0});
  EXPECT_TRUE(same(here.run<op::sum>({x}, over(2)).at(0), {infinity, nan, nan, 0}));
}

}  // namespace sum_test
}  // namespace isotope::op_test
