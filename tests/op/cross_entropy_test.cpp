// labels: vulkan_subgroups
#include "harness.hpp"

namespace isotope::op_test {
namespace cross_entropy_test {

template <class C> class cross_entropy : public op_test<C> {};
TYPED_TEST_SUITE(cross_entropy, everywhere);

/// The largest logit of a row, and the sum of e^(logit - it).
struct statistics {
  double top = -infinity, sum = 0;
  statistics(const host& x, std::int64_t row) {
    const std::int64_t V = x.dims[-1];
    for (std::int64_t c = 0; c < V; ++c) top = std::fmax(top, x[row * V + c]);
    for (std::int64_t c = 0; c < V; ++c) sum += std::exp(x[row * V + c] - top);
  }
};
host targets_of(std::int64_t rows, std::int64_t V) {  // some leave their row out
  host t = full({rows}, dtype::i32, 0);
  for (std::int64_t r = 0; r < rows; ++r) t.at[std::size_t(r)] = r % 5 == 1 ? -1 : r % 5 == 3 ? double(V) : double(r * 7 % V);
  return t;
}
constexpr std::int64_t sizes[][2] = {{1, 1}, {1, 2}, {5, 7}, {13, 65}, {33, 17}, {4, 257}, {3, 1031}, {2100, 3}};

TYPED_TEST(cross_entropy, loss_maxima_and_sums_match_the_definition) {
  using F = TestFixture;
  for (const auto& [rows, V] : sizes) {
    const host x = random({rows, V}, F::type, 1, -5, 5), t = targets_of(rows, V);
    std::vector<double> tops, sums;
    double loss = 0, counted = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      const statistics s(x, r);
      tops.push_back(s.top), sums.push_back(s.sum);
      if (t[r] >= 0 && t[r] < double(V)) loss += s.top - x[r * V + std::int64_t(t[r])] + std::log(s.sum), ++counted;
    }
    const auto y = F::template run<op::cross_entropy>({x, t});
    ASSERT_EQ(y.size(), 3u);
    ASSERT_EQ(y[0].type, F::accum);
    // a row's loss is at most 10 + ln V < 16, from V terms; the mean of the rows sums `rows` of them
    EXPECT_TRUE(near(y[0], {loss / counted}, F::roundings(double(V + rows + 20)) * 16)) << V;
    EXPECT_TRUE(same(y[1], tops)) << V;
    EXPECT_TRUE(near(y[2], sums, F::roundings(double(V + 20)) * double(V))) << V;  // V terms of at most 1, exponents to -10
  }
}
TYPED_TEST(cross_entropy, gradient_matches_the_formula_and_is_zero_in_rows_that_do_not_count) {
  using F = TestFixture;
  for (const auto& [rows, V] : sizes) {
    const host x = random({rows, V}, F::type, 1, -5, 5), t = targets_of(rows, V), dloss({}, F::accum, {0.75});
    const auto y = F::template run<op::cross_entropy>({x, t});
    const auto d = F::template run<op::cross_entropy_grad>({x, t, y.at(1), y.at(2), dloss});
    double counted = 0;
    for (double v : t.at) counted += v >= 0 && v < double(V) ? 1 : 0;
    std::vector<double> dx;
    for (std::int64_t i = 0; i < rows * V; ++i) {
      const double target = t[i / V];
      const bool counts = target >= 0 && target < double(V);
      dx.push_back(counts ? 0.75 * (std::exp(x[i] - y[1][i / V]) / y[2][i / V] - (double(i % V) == target ? 1 : 0)) / counted : 0);
    }
    EXPECT_TRUE(near(d.at(0), dx, F::roundings(24) / counted)) << V;  // the exponent's error is that of a number up to 16
  }
}
TYPED_TEST(cross_entropy, columns_behind_the_classes_may_hold_anything_and_get_no_gradient) {
  using F = TestFixture;
  constexpr std::int64_t padded_sizes[][3] = {{5, 8, 7}, {3, 64, 50}, {2, 67, 64}, {4, 512, 257}, {6, 9, 1}};
  for (const auto& [rows, N, V] : padded_sizes) {
    const host x = random({rows, V}, F::type, 1, -5, 5), t = targets_of(rows, V), dloss({}, F::accum, {0.75});
    host padded = full({rows, N}, F::type, nan);
    for (std::int64_t i = 0; i < rows * V; ++i) padded.at[std::size_t(i / V * N + i % V)] = x[i];
    attributes classes;
    classes.i[0] = V;
    const auto y = F::template run<op::cross_entropy>({x, t}), z = F::template run<op::cross_entropy>({padded, t}, classes);
    EXPECT_TRUE(near(z.at(0), y.at(0).at, F::roundings(double(V + rows + 20)) * 16)) << N;
    EXPECT_TRUE(same(z.at(1), y.at(1).at)) << N;
    EXPECT_TRUE(near(z.at(2), y.at(2).at, F::roundings(double(V + 20)) * double(V))) << N;
    const auto d = F::template run<op::cross_entropy_grad>({x, t, z.at(1), z.at(2), dloss});
    const auto e = F::template run<op::cross_entropy_grad>({padded, t, z.at(1), z.at(2), dloss}, classes);
    std::vector<double> wanted(std::size_t(rows * N), 0);
    for (std::int64_t i = 0; i < rows * V; ++i) wanted[std::size_t(i / V * N + i % V)] = d.at(0)[i];
    EXPECT_TRUE(same(e.at(0), wanted)) << N;
  }
}
// A number added to all logits of a row changes nothing as far as the format holds the logits: 2^17 and its successors by 1 are exact in f32, 2^7 in bf16.
TYPED_TEST(cross_entropy, logits_far_from_zero_lose_nothing) {
  using F = TestFixture;
  const host t({1}, dtype::i32, {0}), dloss({}, F::accum, {1});
  for (const double off : {128.0, 1e3, 1e4, 131072.0, -131072.0}) {
    if (F::type == dtype::bf16 && std::fabs(off) > 128) continue;
    const host x({1, 2}, F::type, {off, off + 1});
    const auto y = F::template run<op::cross_entropy>({x, t});
    const double p = 1 / (1 + std::exp(1.0));  // of the target
    EXPECT_TRUE(near(y.at(0), {-std::log(p)}, F::roundings(8))) << off;
    const auto d = F::template run<op::cross_entropy_grad>({x, t, y.at(1), y.at(2), dloss});
    EXPECT_TRUE(near(d.at(0), {p - 1, 1 - p}, F::roundings(8))) << off;
  }
}
TYPED_TEST(cross_entropy, no_row_that_counts_gives_zero_loss_and_zero_gradient) {
  using F = TestFixture;
  const host x = random({3, 4}, F::type, 1), t({3}, dtype::i32, {-1, 4, -100});
  const auto y = F::template run<op::cross_entropy>({x, t});
  EXPECT_TRUE(same(y.at(0), {0}));
  const auto d = F::template run<op::cross_entropy_grad>({x, t, y.at(1), y.at(2), host({}, F::accum, {1})});
  EXPECT_TRUE(same(d.at(0), std::vector<double>(12, 0)));
  EXPECT_TRUE(same(F::template run<op::cross_entropy>({full({0, 4}, F::type, 0), full({0}, dtype::i32, 0)}).at(0), {0}));
}
TYPED_TEST(cross_entropy, large_logits_do_not_overflow_minus_infinity_excludes_a_class_nan_shows) {
  using F = TestFixture;
  const host x({2, 3}, F::type, {16384, -16384, 16384, -infinity, 0, 0});
  const auto y = F::template run<op::cross_entropy>({x, host({2}, dtype::i32, {0, 1})});
  EXPECT_TRUE(near(y.at(0), {std::log(2.0)}, F::roundings(8)));
  const auto bad = F::template run<op::cross_entropy>({host({1, 2}, F::type, {nan, 0}), host({1}, dtype::i32, {1})});
  EXPECT_TRUE(same(bad.at(0), {nan}));
}

}  // namespace cross_entropy_test
}  // namespace isotope::op_test
