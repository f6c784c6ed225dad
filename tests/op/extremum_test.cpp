// labels: subgroups
#include "harness.hpp"

namespace isotope::op_test {
namespace extremum_test {

class extremum : public op_test {};
INSTANTIATE_TEST_SUITE_P(, extremum, everywhere(), target_name);

attributes over(std::int64_t axes, bool keep = false) { return op::extremum::constants{.axes = axes, .keep = keep}; }
TEST_P(extremum, max_and_min_take_the_extremes_of_any_axes_and_strides) {
  const auto& here = *this;
  const std::int64_t sizes[][3] = {{1, 1, 1}, {3, 5, 2}, {7, 65, 1}, {2, 3, 131}};
  for (const auto& [A, B, C] : sizes) {
    for (bool keep : {false, true}) {
      const host x = laid_out(random({A, B, C}, here.type, 1), {1, 0, 2}, 1);
      std::vector<double> high(std::size_t(B), -infinity), low(std::size_t(B), infinity), rows;
      for (std::int64_t i = 0; i < A * B * C; ++i) {
        const auto b = std::size_t(i / C % B);
        high[b] = std::max(high[b], x[i]);
        low[b] = std::min(low[b], x[i]);
        if (i % C == 0) rows.push_back(x[i]);
        rows.back() = std::max(rows.back(), x[i]);
      }
      EXPECT_TRUE(same(here.run<op::max>({x}, over(0b101, keep)).at(0), high));
      EXPECT_TRUE(same(here.run<op::min>({x}, over(0b101, keep)).at(0), low));
      EXPECT_TRUE(same(here.run<op::max>({x}, over(0b100, keep)).at(0), rows));
    }
  }
}
TEST_P(extremum, long_rows_lose_nothing) {
  const auto& here = *this;
  host x = random({2, 2500, 2}, here.type, 1);
  std::vector<double> high(2, -infinity), low(2, infinity);
  for (std::int64_t i = 0; i < x.dims.count(); ++i) {
    high[std::size_t(i % 2)] = std::max(high[std::size_t(i % 2)], x[i]);
    low[std::size_t(i % 2)] = std::min(low[std::size_t(i % 2)], x[i]);
  }
  EXPECT_TRUE(same(here.run<op::max>({x}, over(0b011)).at(0), high));
  EXPECT_TRUE(same(here.run<op::min>({x}, over(0b011)).at(0), low));
  x.at[4321] = nan;
  EXPECT_TRUE(same(here.run<op::max>({x}, over(0b011)).at(0), {high[0], nan}));
  EXPECT_TRUE(same(here.run<op::min>({x}, over(0b011)).at(0), {low[0], nan}));
}
TEST_P(extremum, nan_wins_wherever_it_stands) {
  const auto& here = *this;
  const host x({3, 3}, here.type, {nan, 1, 2, 1, nan, infinity, -infinity, 1, nan});
  EXPECT_TRUE(same(here.run<op::max>({x}, over(2)).at(0), {nan, nan, nan}));
  EXPECT_TRUE(same(here.run<op::min>({x}, over(2)).at(0), {nan, nan, nan}));
}
TEST_P(extremum, rows_of_one_infinity_give_it) {
  const auto& here = *this;
  const host x({2, 2}, here.type, {infinity, infinity, -infinity, -infinity});
  EXPECT_TRUE(same(here.run<op::max>({x}, over(2)).at(0), {infinity, -infinity}));
  EXPECT_TRUE(same(here.run<op::min>({x}, over(2)).at(0), {infinity, -infinity}));
}
TEST_P(extremum, minus_zero_is_below_zero) {
  const auto& here = *this;
  const std::vector<double> rows = {-0.0, 0, 0, -0.0, -0.0, -0.0, -1, -0.0, 0, 1}, columns = {-0.0, 0, -0.0, -1, 0, 0, -0.0, -0.0, -0.0, 1};
  const std::vector<double> largest = {0, 0, -0.0, -0.0, 1}, smallest = {-0.0, -0.0, -0.0, -1, 0};
  const auto words_of = [](const host& y) {
    std::vector<std::pair<double, bool>> all;
    for (std::int64_t i = 0; i < y.dims.count(); ++i) all.emplace_back(y[i], std::signbit(y[i]));
    return all;
  };
  const auto expected = [&](const std::vector<double>& y) { return words_of(host({5}, here.type, y)); };
  for (const int axis : {1, 0}) {
    const host x = axis == 1 ? host({5, 2}, here.type, rows) : host({2, 5}, here.type, columns);
    EXPECT_EQ(words_of(here.run<op::max>({x}, over(1 << axis)).at(0)), expected(largest)) << "axis " << axis;
    EXPECT_EQ(words_of(here.run<op::min>({x}, over(1 << axis)).at(0)), expected(smallest)) << "axis " << axis;
  }
}
TEST_P(extremum, argmax_takes_the_first_of_equals_and_the_first_nan) {
  const auto& here = *this;
  const host x({5, 4}, here.type,
               {1, 3, 3, 2, -0.0, 0, -1, 0, 1, nan, 5, nan, -infinity, -infinity, -infinity, -infinity, 0, 1, 2, infinity});
  EXPECT_TRUE(same(here.run<op::argmax>({x}, over(1)).at(0), {1, 0, 1, 0, 3}));
}
TEST_P(extremum, argmax_works_along_any_axis_at_awkward_sizes) {
  const auto& here = *this;
  for (std::int64_t n : {1, 2, 63, 67}) {
    const host x = laid_out(random({n, 3}, here.type, 1), {1, 0});
    std::vector<double> expected(3, 0);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t c = 0; c < 3; ++c)
        if (x[i * 3 + c] > x[std::int64_t(expected[std::size_t(c)]) * 3 + c]) expected[std::size_t(c)] = double(i);
    EXPECT_TRUE(same(here.run<op::argmax>({x}, over(0)).at(0), expected));
  }
}

}  // namespace extremum_test
}  // namespace isotope::op_test
