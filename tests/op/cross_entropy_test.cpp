// labels: vulkan_subgroups
#include "harness.hpp"

namespace isotope::op_test {
namespace cross_entropy_test {

template <class C> class cross_entropy : public op_test<C> {};
TYPED_TEST_SUITE(cross_entropy, everywhere);

double log_sum(const host& x, std::int64_t row) {
  double sum = 0;
  for (std::int64_t c = 0; c < x.dims[-1]; ++c) sum += std::exp(x[row * x.dims[-1] + c]);
  return std::log(sum);
}
host targets_of(std::int64_t rows, std::int64_t V) {  // some leave their row out
  host t = full({rows}, dtype::i32, 0);
  for (std::int64_t r = 0; r < rows; ++r) t.at[std::size_t(r)] = r % 5 == 1 ? -1 : r % 5 == 3 ? double(V) : double(r * 7 % V);
  return t;
}
constexpr std::int64_t sizes[][2] = {{1, 1}, {1, 2}, {5, 7}, {13, 65}, {33, 17}, {4, 257}, {2100, 3}};

TYPED_TEST(cross_entropy, loss_and_log_sums_match_the_definition) {
  using F = TestFixture;
  for (const auto& [rows, V] : sizes) {
    const host x = random({rows, V}, F::type, 1, -5, 5), t = targets_of(rows, V);
    std::vector<double> lse;
    double loss = 0, counted = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      lse.push_back(log_sum(x, r));
      if (t[r] >= 0 && t[r] < double(V)) loss += lse.back() - x[r * V + std::int64_t(t[r])], ++counted;
    }
    const auto y = F::template run<op::cross_entropy>({x, t});
    ASSERT_EQ(y.size(), 2u);
    ASSERT_EQ(y[0].type, F::accum);
    // a row's loss is at most 10 + ln V < 16, from V terms; the mean of the rows sums `rows` of them
    EXPECT_TRUE(near(y[0], {loss / counted}, F::roundings(double(V + rows + 20)) * 16)) << V;
    EXPECT_TRUE(near(y[1], lse, F::roundings(double(V + 20)) * 16)) << V;
  }
}
TYPED_TEST(cross_entropy, gradient_matches_the_formula_and_is_zero_in_rows_that_do_not_count) {
  using F = TestFixture;
  for (const auto& [rows, V] : sizes) {
    const host x = random({rows, V}, F::type, 1, -5, 5), t = targets_of(rows, V), dloss({}, F::accum, {0.75});
    const auto y = F::template run<op::cross_entropy>({x, t});
    const auto d = F::template run<op::cross_entropy_grad>({x, t, y.at(1), dloss});
    double counted = 0;
    for (double v : t.at) counted += v >= 0 && v < double(V) ? 1 : 0;
    std::vector<double> dx;
    for (std::int64_t i = 0; i < rows * V; ++i) {
      const double target = t[i / V];
      const bool counts = target >= 0 && target < double(V);
      dx.push_back(counts ? 0.75 * (std::exp(x[i] - y[1][i / V]) - (double(i % V) == target ? 1 : 0)) / counted : 0);
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
    EXPECT_TRUE(near(z.at(1), y.at(1).at, F::roundings(double(V + 20)) * 16)) << N;
    const auto d = F::template run<op::cross_entropy_grad>({x, t, z.at(1), dloss});
    const auto e = F::template run<op::cross_entropy_grad>({padded, t, z.at(1), dloss}, classes);
    std::vector<double> wanted(std::size_t(rows * N), 0);
    for (std::int64_t i = 0; i < rows * V; ++i) wanted[std::size_t(i / V * N + i % V)] = d.at(0)[i];
    EXPECT_TRUE(same(e.at(0), wanted)) << N;
  }
}
TYPED_TEST(cross_entropy, no_row_that_counts_gives_zero_loss_and_zero_gradient) {
  using F = TestFixture;
  const host x = random({3, 4}, F::type, 1), t({3}, dtype::i32, {-1, 4, -100});
  const auto y = F::template run<op::cross_entropy>({x, t});
  EXPECT_TRUE(same(y.at(0), {0}));
  const auto d = F::template run<op::cross_entropy_grad>({x, t, y.at(1), host({}, F::accum, {1})});
  EXPECT_TRUE(same(d.at(0), std::vector<double>(12, 0)));
  EXPECT_TRUE(same(F::template run<op::cross_entropy>({full({0, 4}, F::type, 0), full({0}, dtype::i32, 0)}).at(0), {0}));
}
TYPED_TEST(cross_entropy, large_logits_do_not_overflow_minus_infinity_excludes_a_class_nan_shows) {
  using F = TestFixture;
  const host x({2, 3}, F::type, {16384, -16384, 16384, -infinity, 0, 0});
  const auto y = F::template run<op::cross_entropy>({x, host({2}, dtype::i32, {0, 1})});
  EXPECT_TRUE(near(y.at(0), {std::log(2.0)}, F::exact ? 0 : 16384 * 0x1p-22));  // lse is a number near 16384
  const auto bad = F::template run<op::cross_entropy>({host({1, 2}, F::type, {nan, 0}), host({1}, dtype::i32, {1})});
  EXPECT_TRUE(same(bad.at(0), {nan}));
}

}  // namespace cross_entropy_test
}  // namespace isotope::op_test
