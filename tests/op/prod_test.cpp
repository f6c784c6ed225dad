// labels: subgroups
#include "harness.hpp"

#include <isotope/op/prod.hpp>

namespace isotope::op_test {
namespace prod_test {

class prod : public op_test {};
INSTANTIATE_TEST_SUITE_P(, prod, everywhere(), target_name);

attributes over(std::int64_t axes, bool keep = false, format_number type = {}) {
  return op::prod::constants{.axes = axes, .keep = keep, .format = type};
}
/// The products over the axes of a mask, in the order of the kept axes.
std::vector<double> products(const host& x, std::int64_t axes) {
  std::int64_t kept = 1;
  for (int k = 0; k < x.dims.rank; ++k)
    if (((axes >> k) & 1) == 0) kept *= x.dims[k];
  std::vector<double> y(std::size_t(kept), 1);
  for (std::int64_t i = 0; i < x.dims.count(); ++i) {
    std::int64_t rest = i, to = 0, stride = 1;
    for (int k = x.dims.rank - 1; k >= 0; --k) {
      if (((axes >> k) & 1) == 0) to += rest % x.dims[k] * stride, stride *= x.dims[k];
      rest /= x.dims[k];
    }
    y[std::size_t(to)] *= x[i];
  }
  return y;
}
/// The tolerance of n roundings relative to the expected value.
auto within(const prod& here, double n, const std::vector<double>& expected) {
  return [&expected, relative = here.roundings(n)](std::size_t i) { return relative * std::fabs(expected[i]); };
}

TEST_P(prod, matches_on_every_set_of_axes_and_any_strides) {
  const shape shapes[] = {{1}, {67}, {3, 5}, {65, 2}, {2, 3, 4}, {2, 1, 3, 7}, {4, 0, 3}, {}};
  for (const shape& s : shapes)
    for (std::int64_t axes = 0; axes < (std::int64_t(1) << s.rank); ++axes)
      for (const bool keep : {false, true}) {
        host x = random(s, type, 1, -1.6, -0.5);
        if (s.rank == 3) x = laid_out(x, {2, 0, 1}, 2);
        const auto expected = products(x, axes);
        const auto y = run<op::prod>({x}, over(axes, keep));
        EXPECT_TRUE(near(y.at(0), expected, within(*this, 80, expected))) << axes;
        if (keep) { EXPECT_EQ(y[0].dims.rank, s.rank); }
      }
}
TEST_P(prod, the_product_of_nothing_is_one) { EXPECT_TRUE(same(run<op::prod>({full({2, 0}, type, 0)}, over(2)).at(0), {1, 1})); }
TEST_P(prod, long_rows_and_columns_keep_the_bound_and_the_result_may_have_another_format) {
  for (const std::int64_t n : {1023, 1025, 4099, 40000}) {
    const host rows = random({2, n}, type, 1, 1 - 0x1p-6, 1 + 0x1p-6), columns = random({n, 3}, type, 2, 1 - 0x1p-6, 1 + 0x1p-6);
    const auto by_rows = products(rows, 2), by_columns = products(columns, 1);
    const auto y = run<op::prod>({rows}, over(2, false, accum)), z = run<op::prod>({columns}, over(1));
    EXPECT_EQ(y.at(0).type, accum);
    EXPECT_TRUE(near(y[0], by_rows, within(*this, double(n), by_rows))) << n;
    EXPECT_TRUE(near(z.at(0), by_columns, within(*this, double(n), by_columns))) << n;
  }
}
TEST_P(prod, zeros_infinities_and_nan_show) {
  const host x({6, 3}, type, {0, 2, 3, -0.0, 2, 3, infinity, -2, 1, 0, infinity, 1, nan, 0, 1, -0.0, -1, 5});
  const auto y = run<op::prod>({x}, over(2)).at(0);
  EXPECT_TRUE(same(y, {0, -0.0, -infinity, nan, nan, 0}));
  for (const std::size_t i : {0u, 1u, 5u}) EXPECT_EQ(std::signbit(y.at[i]), i == 1) << i;
}
TEST_P(prod, gradients_are_products_of_the_others_at_any_length) {
  for (const auto& [rows, n] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 2}, {5, 67}, {70, 33}, {2, 1031}, {3, 4100}}) {
    const host x = random({rows, n}, type, 1, n > 100 ? 1 - 0x1p-6 : -1.6, n > 100 ? 1 + 0x1p-6 : -0.5), dy = random({rows}, type, 2);
    std::vector<double> expected;
    for (std::int64_t r = 0; r < rows; ++r) {
      double all = dy[r];
      for (std::int64_t i = 0; i < n; ++i) all *= x[r * n + i];
      for (std::int64_t i = 0; i < n; ++i) expected.push_back(all / x[r * n + i]);
    }
    EXPECT_TRUE(near(run<op::prod_grad>({x, dy}).at(0), expected, within(*this, double(n) + 4, expected))) << rows << ' ' << n;
  }
}
TEST_P(prod, gradients_of_zeros_divide_nothing) {
  const host x({5, 4}, type, {2, 0, 3, 4, 0, 2, -0.0, 3, infinity, 2, 3, 1, 1, nan, 2, 4, 2, 4, 8, 0.5}), dy({5}, type, {1, 1, 1, 2, -1});
  EXPECT_TRUE(same(run<op::prod_grad>({x, dy}).at(0),
                   {0, 24, 0, 0, 0, 0, 0, 0, 6, infinity, infinity, infinity, nan, 16, nan, nan, -16, -8, -4, -64}));
  EXPECT_EQ(run<op::prod_grad>({host({0, 3}, type, {}), host({0}, type, {})}).at(0).dims.count(), 0);
}
TEST(prod_refused, over_an_axis_that_is_not_there_and_of_whole_numbers) {
  for (const bool whole : {false, true}) {
    tape t(dtype::f32);
    const auto x = t.g.add_value({2, 3}, whole ? dtype::i32 : dtype::f32, value_kind::input);
    t.apply(rules<op::prod>, std::array{x}, over(whole ? 1 : 4), place::current());
    EXPECT_FALSE(t.ok()) << whole;
  }
}

}  // namespace prod_test
}  // namespace isotope::op_test
