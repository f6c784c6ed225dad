// labels: subgroups
#include "harness.hpp"

namespace isotope::op_test {
namespace cross_entropy_test {

class cross_entropy : public op_test {};
INSTANTIATE_TEST_SUITE_P(, cross_entropy, everywhere(), target_name);

/// The largest logit of a row, `top`, and the sum of e^(logit - top).
struct statistics {
  double top = -infinity, sum = 0;
  statistics(const host& x, std::int64_t row) {
    const std::int64_t V = x.dims[-1];
    for (std::int64_t c = 0; c < V; ++c) top = std::fmax(top, x[row * V + c]);
    for (std::int64_t c = 0; c < V; ++c) sum += std::exp(x[row * V + c] - top);
  }
};
host targets_of(std::int64_t rows, std::int64_t V) {  // some are out of range, so their rows do not count
  host t = full({rows}, dtype::i32, 0);
  for (std::int64_t r = 0; r < rows; ++r) t.at[std::size_t(r)] = r % 5 == 1 ? -1 : r % 5 == 3 ? double(V) : double(r * 7 % V);
  return t;
}
constexpr std::int64_t sizes[][2] = {{1, 1}, {1, 2}, {5, 7}, {13, 65}, {33, 17}, {4, 257}, {3, 1031}, {2100, 3}};

TEST_P(cross_entropy, loss_maxima_and_sums_match_the_definition) {
  const auto& here = *this;
  for (const auto& [rows, V] : sizes) {
    const host x = random({rows, V}, here.type, 1, -5, 5), t = targets_of(rows, V);
    std::vector<double> tops, sums;
    double loss = 0, counted = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      const statistics s(x, r);
      tops.push_back(s.top), sums.push_back(s.sum);
      if (t[r] >= 0 && t[r] < double(V)) loss += s.top - x[r * V + std::int64_t(t[r])] + std::log(s.sum), ++counted;
    }
    const auto y = here.run<op::cross_entropy>({x, t});
    ASSERT_EQ(y.size(), 3u);
    ASSERT_EQ(y[0].type, here.accum);
    // The loss of a row is at most 10 + ln V < 16 and has V terms; the mean sums `rows` of them.
    EXPECT_TRUE(near(y[0], {loss / counted}, here.roundings(double(V + rows + 20)) * 16)) << V;
    EXPECT_TRUE(same(y[1], tops)) << V;
    EXPECT_TRUE(near(y[2], sums, here.roundings(double(V + 20)) * double(V))) << V;  // V terms of at most 1, exponents to -10
  }
}
TEST_P(cross_entropy, gradient_matches_the_formula_and_is_zero_in_rows_that_do_not_count) {
  const auto& here = *this;
  for (const auto& [rows, V] : sizes) {
    const host x = random({rows, V}, here.type, 1, -5, 5), t = targets_of(rows, V), dloss({}, here.accum, {0.75});
    const auto y = here.run<op::cross_entropy>({x, t});
    const auto d = here.run<op::cross_entropy_grad>({x, t, y.at(1), y.at(2), dloss});
    double counted = 0;
    for (double v : t.at) counted += v >= 0 && v < double(V) ? 1 : 0;
    std::vector<double> dx;
    for (std::int64_t i = 0; i < rows * V; ++i) {
      const double target = t[i / V];
      const bool counts = target >= 0 && target < double(V);
      dx.push_back(counts ? 0.75 * (std::exp(x[i] - y[1][i / V]) / y[2][i / V] - (double(i % V) == target ? 1 : 0)) / counted : 0);
    }
    // The exponent is at most 16, so its absolute error is that of such a number.
    EXPECT_TRUE(near(d.at(0), dx, here.roundings(24) / counted)) << V;
  }
}
TEST_P(cross_entropy, columns_behind_the_classes_may_hold_anything_and_get_no_gradient) {
  const auto& here = *this;
  constexpr std::int64_t padded_sizes[][3] = {{5, 8, 7}, {3, 64, 50}, {2, 67, 64}, {4, 512, 257}, {6, 9, 1}};
  for (const auto& [rows, N, V] : padded_sizes) {
    const host x = random({rows, V}, here.type, 1, -5, 5), t = targets_of(rows, V), dloss({}, here.accum, {0.75});
    host padded = full({rows, N}, here.type, nan);
    for (std::int64_t i = 0; i < rows * V; ++i) padded.at[std::size_t(i / V * N + i % V)] = x[i];
    const op::cross_entropy::constants classes{.classes = V};
    const auto y = here.run<op::cross_entropy>({x, t}), z = here.run<op::cross_entropy>({padded, t}, classes);
    EXPECT_TRUE(near(z.at(0), y.at(0).at, here.roundings(double(V + rows + 20)) * 16)) << N;
    EXPECT_TRUE(same(z.at(1), y.at(1).at)) << N;
    EXPECT_TRUE(near(z.at(2), y.at(2).at, here.roundings(double(V + 20)) * double(V))) << N;
    const auto d = here.run<op::cross_entropy_grad>({x, t, z.at(1), z.at(2), dloss});
    const auto e = here.run<op::cross_entropy_grad>({padded, t, z.at(1), z.at(2), dloss}, classes);
    std::vector<double> wanted(std::size_t(rows * N), 0);
    for (std::int64_t i = 0; i < rows * V; ++i) wanted[std::size_t(i / V * N + i % V)] = d.at(0)[i];
    EXPECT_TRUE(same(e.at(0), wanted)) << N;
  }
}
// Adding a number to all logits of a row changes nothing if the sums are exact in the format: 2^17 + 1 is exact in f32, 2^7 + 1 in bf16.
TEST_P(cross_entropy, logits_far_from_zero_lose_nothing) {
  const auto& here = *this;
  const host t({1}, dtype::i32, {0}), dloss({}, here.accum, {1});
  for (const double off : {128.0, 1e3, 1e4, 131072.0, -131072.0}) {
    if (here.type == dtype::bf16 && std::fabs(off) > 128) continue;
    const host x({1, 2}, here.type, {off, off + 1});
    const auto y = here.run<op::cross_entropy>({x, t});
    const double p = 1 / (1 + std::exp(1.0));  // the probability of the target
    EXPECT_TRUE(near(y.at(0), {-std::log(p)}, here.roundings(8))) << off;
    const auto d = here.run<op::cross_entropy_grad>({x, t, y.at(1), y.at(2), dloss});
    EXPECT_TRUE(near(d.at(0), {p - 1, 1 - p}, here.roundings(8))) << off;
  }
}
TEST_P(cross_entropy, no_row_that_counts_gives_zero_loss_and_zero_gradient) {
  const auto& here = *this;
  const host x = random({3, 4}, here.type, 1), t({3}, dtype::i32, {-1, 4, -100});
  const auto y = here.run<op::cross_entropy>({x, t});
  EXPECT_TRUE(same(y.at(0), {0}));
  const auto d = here.run<op::cross_entropy_grad>({x, t, y.at(1), y.at(2), host({}, here.accum, {1})});
  EXPECT_TRUE(same(d.at(0), std::vector<double>(12, 0)));
  EXPECT_TRUE(same(here.run<op::cross_entropy>({full({0, 4}, here.type, 0), full({0}, dtype::i32, 0)}).at(0), {0}));
}
TEST_P(cross_entropy, large_logits_do_not_overflow_minus_infinity_excludes_a_class_nan_shows) {
  const auto& here = *this;
  const host x({2, 3}, here.type, {16384, -16384, 16384, -infinity, 0, 0});
  const auto y = here.run<op::cross_entropy>({x, host({2}, dtype::i32, {0, 1})});
  EXPECT_TRUE(near(y.at(0), {std::log(2.0)}, here.roundings(8)));
  const auto bad = here.run<op::cross_entropy>({host({1, 2}, here.type, {nan, 0}), host({1}, dtype::i32, {1})});
  EXPECT_TRUE(same(bad.at(0), {nan}));
}

}  // namespace cross_entropy_test
}  // namespace isotope::op_test
