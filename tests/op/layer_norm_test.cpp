// labels: subgroups
#include "harness.hpp"

namespace isotope::op_test {
namespace layer_norm_test {

class layer_norm : public op_test {};
INSTANTIATE_TEST_SUITE_P(, layer_norm, everywhere(), target_name);

attributes epsilon(double x) { return op::layer_norm::constants{.epsilon = x}; }
struct statistics {
  double mean = 0, rstd = 0;
};
statistics of_row(const host& x, std::int64_t row, double eps) {
  const auto C = x.dims[-1];
  long double mean = 0, variance = 0;
  for (std::int64_t c = 0; c < C; ++c) mean += x[row * C + c];
  mean /= static_cast<long double>(C);
  for (std::int64_t c = 0; c < C; ++c) variance += (x[row * C + c] - mean) * (x[row * C + c] - mean);
  return {double(mean), double(1 / std::sqrt(variance / static_cast<long double>(C) + eps))};
}
constexpr std::int64_t sizes[][2] = {{1, 1}, {2, 3}, {5, 16}, {3, 17}, {7, 64}, {2, 131}, {33, 5}, {2100, 3}, {0, 8}};
constexpr std::int64_t widths_of_sums[][2] = {{37, 7}, {5, 64}, {6, 131}, {3, 1544}, {2, 5003}, {0, 8}};

TEST_P(layer_norm, forward_matches_the_definition_at_awkward_sizes) {
  const auto& here = *this;
  for (const auto& [rows, C] : sizes) {
    const host x = random({rows, C}, here.type, 1), w = random({C}, here.type, 2), b = random({C}, here.type, 3);
    const auto y = here.run<op::layer_norm>({x, w, b}, epsilon(1e-2));
    std::vector<double> expected, means, rstds;
    for (std::int64_t i = 0; i < rows * C; ++i) {
      const auto s = of_row(x, i / C, 1e-2);
      expected.push_back((x[i] - s.mean) * s.rstd * w[i % C] + b[i % C]);
      if (i % C == 0) means.push_back(s.mean), rstds.push_back(s.rstd);
    }
    ASSERT_EQ(y.size(), 3u);
    // rstd <= 10 because of epsilon; |x - mean| <= 4, |w| <= 2; C + 4 roundings in the statistics and 4 in the formula
    EXPECT_TRUE(near(y[0], expected, here.roundings(double(C + 8)) * 4 * 10 * 2 * 2)) << C;
    EXPECT_TRUE(near(y[1], means, here.roundings(double(C)) * 2)) << C;
    EXPECT_TRUE(near(y[2], rstds, here.roundings(double(2 * C + 4)) * 10 * 16)) << C;
  }
}
TEST_P(layer_norm, a_mean_far_above_the_deviation_loses_nothing) {
  const auto& here = *this;
  const double far = here.type == dtype::bf16 ? 128 : 4096;  // 128 and 129 are exact in bf16
  const host x({1, 4}, here.type, {far, far + 1, far, far + 1}), w = full({4}, here.type, 1), b = full({4}, here.type, 0);
  const auto y = here.run<op::layer_norm>({x, w, b}, epsilon(0));
  EXPECT_TRUE(near(y.at(0), {-1, 1, -1, 1}, here.roundings(16)));  // mean and differences from it are exact
}
TEST_P(layer_norm, equal_elements_give_the_bias_and_nan_or_infinity_give_nan) {
  const auto& here = *this;
  const host x({3, 2}, here.type, {5, 5, 1, nan, infinity, 0}), w = full({2}, here.type, 3), b({2}, here.type, {1, 2});
  EXPECT_TRUE(same(here.run<op::layer_norm>({x, w, b}, epsilon(1e-5)).at(0), {1, 2, nan, nan, nan, nan}));
}
TEST_P(layer_norm, rows_without_elements_have_undefined_statistics) {
  const auto& here = *this;
  const host x({3, 0}, here.type, {}), w({0}, here.type, {}), b({0}, here.type, {});
  const auto y = here.run<op::layer_norm>({x, w, b}, epsilon(1e-5));
  ASSERT_EQ(y.size(), 3u);
  EXPECT_TRUE(y[0].at.empty());
  for (std::size_t k = 1; k < y.size(); ++k) EXPECT_TRUE(same(y[k], {nan, nan, nan}));
}
TEST_P(layer_norm, gradient_matches_the_formula) {
  const auto& here = *this;
  for (const auto& [rows, C] : sizes) {
    const host x = random({rows, C}, here.type, 1), w = random({C}, here.type, 2), b = random({C}, here.type, 3),
               dy = random({rows, C}, here.type, 4);
    const auto y = here.run<op::layer_norm>({x, w, b}, epsilon(1e-2));
    const auto d = here.run<op::layer_norm_grad>({x, w, b, y.at(1), y.at(2), dy}, epsilon(1e-2));
    std::vector<double> dx, dw(std::size_t(C), 0), db(std::size_t(C), 0);
    for (std::int64_t r = 0; r < rows; ++r) {
      const double mean = y[1][r], rstd = y[2][r];  // rounded, as the gradient kernel reads them
      double avg_e = 0, avg_eh = 0;
      for (std::int64_t c = 0; c < C; ++c) {
        const double h = (x[r * C + c] - mean) * rstd, e = dy[r * C + c] * w[c];
        dw[std::size_t(c)] += dy[r * C + c] * h;
        db[std::size_t(c)] += dy[r * C + c];
        avg_e += e / double(C);
        avg_eh += e * h / double(C);
      }
      for (std::int64_t c = 0; c < C; ++c) dx.push_back(rstd * (dy[r * C + c] * w[c] - avg_e - (x[r * C + c] - mean) * rstd * avg_eh));
    }
    ASSERT_EQ(d.size(), 3u);
    // |h| <= 40 (rstd <= 10), |e| <= 4, so each of the three terms is at most 40 x 160 x 10
    EXPECT_TRUE(near(d[0], dx, here.roundings(double(C + 8)) * 64000)) << C;
    EXPECT_TRUE(near(d[1], dw, here.roundings(double(rows + 4)) * 80 * double(rows))) << C;
    EXPECT_TRUE(near(d[2], db, here.roundings(double(rows)) * 2 * double(rows))) << C;
  }
}
TEST_P(layer_norm, gradient_with_an_addend_has_the_bits_of_a_sum_behind_it) {
  const auto& here = *this;
  if (!here.kernel<op::layer_norm_grad>().takes_addend) GTEST_SKIP() << "this kernel takes no addend";
  for (const auto& [rows, C] : widths_of_sums) {
    const host x = random({rows, C}, here.type, 1), w = random({C}, here.type, 2), b = random({C}, here.type, 3),
               dy = random({rows, C}, here.type, 4), addend = random({rows, C}, here.type, 5);
    const auto y = here.run<op::layer_norm>({x, w, b}, epsilon(1e-2));
    const auto d = here.run<op::layer_norm_grad>({x, w, b, y.at(1), y.at(2), dy}, epsilon(1e-2)),
               sum = here.run<op::layer_norm_grad>({x, w, b, y.at(1), y.at(2), dy, addend}, epsilon(1e-2));
    ASSERT_EQ(sum.size(), 3u);
    EXPECT_TRUE(same(sum[0], here.run<op::add>({addend, d.at(0)}).at(0).at)) << C;
    EXPECT_TRUE(same(sum[1], d.at(1).at)) << C;
    EXPECT_TRUE(same(sum[2], d.at(2).at)) << C;
  }
}
TEST_P(layer_norm, gradient_gives_the_column_sums_of_dx_as_it_is_stored) {
  const auto& here = *this;
  const auto& kernel = here.kernel<op::layer_norm_grad>();
  if (!kernel.sums_columns({{6, 131}})) GTEST_SKIP() << "this kernel gives no column sums";
  settings summing;
  summing.summed = 0;
  for (const auto& [rows, C] : widths_of_sums) {
    if (!kernel.sums_columns({{rows, C}})) continue;
    const host x = random({rows, C}, here.type, 1), w = random({C}, here.type, 2), b = random({C}, here.type, 3),
               dy = random({rows, C}, here.type, 4), addend = random({rows, C}, here.type, 5);
    const auto y = here.run<op::layer_norm>({x, w, b}, epsilon(1e-2));
    for (const bool adds : {false, true}) {
      std::vector<host> in{x, w, b, y.at(1), y.at(2), dy};
      if (adds) in.push_back(addend);
      const auto d = here.run<op::layer_norm_grad>(in, epsilon(1e-2)), sum = here.run<op::layer_norm_grad>(in, epsilon(1e-2), summing);
      ASSERT_EQ(sum.size(), d.size() + 1);
      EXPECT_TRUE(same(sum[0], d[0].at)) << C;
      for (std::size_t k = 1; k < d.size(); ++k)  // blocks are added in another order; the bounds are those of the definition, twice
        EXPECT_TRUE(near(sum[k], d[k].at, here.roundings(double(rows + 4)) * 160 * double(rows))) << C << ", output " << k;
      EXPECT_TRUE(sums_columns(sum.back(), sum[0], here.roundings(double(rows)))) << C;
    }
  }
}

}  // namespace layer_norm_test
}  // namespace isotope::op_test
