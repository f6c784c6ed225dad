// labels: subgroups
#include "harness.hpp"

namespace isotope::op_test {
namespace rms_norm_test {

class rms_norm : public op_test {};
INSTANTIATE_TEST_SUITE_P(, rms_norm, everywhere(), target_name);

attributes epsilon(double x) { return op::rms_norm::constants{.epsilon = x}; }
constexpr std::int64_t sizes[][2] = {{1, 1}, {2, 3}, {5, 16}, {3, 17}, {7, 64}, {2, 131}, {33, 5}, {2100, 3}, {0, 8}};
constexpr std::int64_t widths_of_sums[][2] = {{37, 7}, {5, 64}, {6, 131}, {3, 1544}, {2, 5003}, {0, 8}};

TEST_P(rms_norm, forward_matches_the_definition_at_awkward_sizes) {
  const auto& here = *this;
  for (const auto& [rows, C] : sizes) {
    const host x = random({rows, C}, here.type, 1), w = random({C}, here.type, 2);
    const auto y = here.run<op::rms_norm>({x, w}, epsilon(1e-2));
    std::vector<double> expected, rstds;
    for (std::int64_t r = 0; r < rows; ++r) {
      double squares = 0;
      for (std::int64_t c = 0; c < C; ++c) squares += x[r * C + c] * x[r * C + c];
      rstds.push_back(1 / std::sqrt(squares / double(C) + 1e-2));
      for (std::int64_t c = 0; c < C; ++c) expected.push_back(x[r * C + c] * rstds.back() * w[c]);
    }
    ASSERT_EQ(y.size(), 2u);
    // rstd <= 10, |x|, |w| <= 2; the relative error of rstd is half of that of the sum of squares, whose terms are all positive
    EXPECT_TRUE(near(y[0], expected, here.roundings(double(C + 8)) * 40)) << C;
    EXPECT_TRUE(near(y[1], rstds, here.roundings(double(C + 4)) * 10)) << C;
  }
}
TEST_P(rms_norm, zeros_stay_zeros_and_nan_or_infinity_give_nan) {
  const auto& here = *this;
  const host x({3, 2}, here.type, {0, -0.0, 1, nan, infinity, infinity}), w = full({2}, here.type, 3);
  EXPECT_TRUE(same(here.run<op::rms_norm>({x, w}, epsilon(1e-5)).at(0), {0, 0, nan, nan, nan, nan}));
}
TEST_P(rms_norm, rows_without_elements_have_undefined_statistics) {
  const auto& here = *this;
  const host x({3, 0}, here.type, {}), w({0}, here.type, {});
  const auto y = here.run<op::rms_norm>({x, w}, epsilon(1e-5));
  ASSERT_EQ(y.size(), 2u);
  EXPECT_TRUE(y[0].at.empty());
  for (std::size_t k = 1; k < y.size(); ++k) EXPECT_TRUE(same(y[k], {nan, nan, nan}));
}
TEST_P(rms_norm, gradient_matches_the_formula) {
  const auto& here = *this;
  for (const auto& [rows, C] : sizes) {
    const host x = random({rows, C}, here.type, 1), w = random({C}, here.type, 2), dy = random({rows, C}, here.type, 4);
    const auto y = here.run<op::rms_norm>({x, w}, epsilon(1e-2));
    const auto d = here.run<op::rms_norm_grad>({x, w, y.at(1), dy}, epsilon(1e-2));
    std::vector<double> dx, dw(std::size_t(C), 0);
    for (std::int64_t r = 0; r < rows; ++r) {
      const double rstd = y[1][r];  // rounded, as the gradient kernel reads it
      double avg_eh = 0;
      for (std::int64_t c = 0; c < C; ++c) {
        dw[std::size_t(c)] += dy[r * C + c] * x[r * C + c] * rstd;
        avg_eh += dy[r * C + c] * w[c] * x[r * C + c] * rstd / double(C);
      }
      for (std::int64_t c = 0; c < C; ++c) dx.push_back(rstd * (dy[r * C + c] * w[c] - x[r * C + c] * rstd * avg_eh));
    }
    ASSERT_EQ(d.size(), 2u);
    // |h| <= 20 (rstd <= 10), |e| <= 4, so each of the two terms is at most 20 x 80 x 10
    EXPECT_TRUE(near(d[0], dx, here.roundings(double(C + 8)) * 16000)) << C;
    EXPECT_TRUE(near(d[1], dw, here.roundings(double(rows + 4)) * 40 * double(rows))) << C;
  }
}
TEST_P(rms_norm, gradient_with_an_addend_has_the_bits_of_a_sum_behind_it) {
  const auto& here = *this;
  if (!here.kernel<op::rms_norm_grad>().takes_addend) GTEST_SKIP() << "this kernel takes no addend";
  for (const auto& [rows, C] : widths_of_sums) {
    const host x = random({rows, C}, here.type, 1), w = random({C}, here.type, 2), dy = random({rows, C}, here.type, 4),
               addend = random({rows, C}, here.type, 5);
    const auto y = here.run<op::rms_norm>({x, w}, epsilon(1e-2));
    const auto d = here.run<op::rms_norm_grad>({x, w, y.at(1), dy}, epsilon(1e-2)),
               sum = here.run<op::rms_norm_grad>({x, w, y.at(1), dy, addend}, epsilon(1e-2));
    ASSERT_EQ(sum.size(), 2u);
    EXPECT_TRUE(same(sum[0], here.run<op::add>({addend, d.at(0)}).at(0).at)) << C;
    EXPECT_TRUE(same(sum[1], d.at(1).at)) << C;
  }
}
TEST_P(rms_norm, gradient_gives_the_column_sums_of_dx_as_it_is_stored) {
  const auto& here = *this;
  const auto& kernel = here.kernel<op::rms_norm_grad>();
  if (!kernel.sums_columns({{6, 131}})) GTEST_SKIP() << "this kernel gives no column sums";
  settings summing;
  summing.summed = 0;
  for (const auto& [rows, C] : widths_of_sums) {
    if (!kernel.sums_columns({{rows, C}})) continue;
    const host x = random({rows, C}, here.type, 1), w = random({C}, here.type, 2), dy = random({rows, C}, here.type, 4),
               addend = random({rows, C}, here.type, 5);
    const auto y = here.run<op::rms_norm>({x, w}, epsilon(1e-2));
    for (const bool adds : {false, true}) {
      std::vector<host> in{x, w, y.at(1), dy};
      if (adds) in.push_back(addend);
      const auto d = here.run<op::rms_norm_grad>(in, epsilon(1e-2)), sum = here.run<op::rms_norm_grad>(in, epsilon(1e-2), summing);
      ASSERT_EQ(sum.size(), d.size() + 1);
      EXPECT_TRUE(same(sum[0], d[0].at)) << C;
      for (std::size_t k = 1; k < d.size(); ++k)  // blocks are added in another order; the bounds are those of the definition, twice
        EXPECT_TRUE(near(sum[k], d[k].at, here.roundings(double(rows + 4)) * 80 * double(rows))) << C << ", output " << k;
      EXPECT_TRUE(sums_columns(sum.back(), sum[0], here.roundings(double(rows)))) << C;
    }
  }
}

}  // namespace rms_norm_test
}  // namespace isotope::op_test
