// labels: subgroups
#include "harness.hpp"

namespace isotope::op_test {
namespace softmax_test {

class softmax : public op_test {};
INSTANTIATE_TEST_SUITE_P(, softmax, everywhere(), target_name);

attributes along(int axis) { return op::softmax::constants{.axis = axis}; }
/// Calls row(f) for each row of an axis, where f(i) is the offset of element i of the row.
template <class Row> void each_row(const shape& s, int axis, Row row) {
  std::int64_t inner = 1;
  for (int k = axis + 1; k < s.rank; ++k) inner *= s[k];
  const std::int64_t n = s[axis];
  for (std::int64_t o = 0; o < (s.count() == 0 ? 0 : s.count() / (inner * n)); ++o)
    for (std::int64_t i = 0; i < inner; ++i) row([=](std::int64_t k) { return std::size_t((o * n + k) * inner + i); });
}
const shape shapes[] = {{1}, {7}, {3, 1}, {2, 65}, {4, 3, 5}, {1, 131}, {0, 4}, {2, 17, 2}};

TEST_P(softmax, both_forms_match_the_definition_on_every_axis) {
  const auto& here = *this;
  for (const shape& s : shapes)
    for (int axis = 0; axis < s.rank; ++axis) {
      const host x = random(s, here.type, 1, -5, 5);
      std::vector<double> p(x.at.size()), logs(x.at.size());
      each_row(s, axis, [&](auto at) {
        double sum = 0;
        for (std::int64_t k = 0; k < s[axis]; ++k) sum += std::exp(x.at[at(k)]);
        for (std::int64_t k = 0; k < s[axis]; ++k) {
          p[at(k)] = std::exp(x.at[at(k)]) / sum;
          logs[at(k)] = x.at[at(k)] - std::log(sum);
        }
      });
      const double n = double(s[axis]);
      // Exponents are up to 10; their absolute error is a relative error of each weight. The sum has n positive terms.
      EXPECT_TRUE(near(here.run<op::softmax>({x}, along(axis)).at(0), p, here.roundings(n + 30))) << axis;
      EXPECT_TRUE(near(here.run<op::log_softmax>({x}, along(axis)).at(0), logs, here.roundings(n + 50))) << axis;
    }
}
TEST_P(softmax, gradients_match_the_formula_on_every_axis) {
  const auto& here = *this;
  for (const shape& s : shapes)
    for (int axis = 0; axis < s.rank; ++axis) {
      const host y = random(s, here.type, 1, 0, 1), logs = random(s, here.type, 3, -4, 0), dy = random(s, here.type, 2);
      std::vector<double> dx(y.at.size()), dl(y.at.size());
      each_row(s, axis, [&](auto at) {
        double dot = 0, sum = 0;
        for (std::int64_t k = 0; k < s[axis]; ++k) dot += y.at[at(k)] * dy.at[at(k)], sum += dy.at[at(k)];
        for (std::int64_t k = 0; k < s[axis]; ++k) {
          dx[at(k)] = y.at[at(k)] * (dy.at[at(k)] - dot);
          dl[at(k)] = dy.at[at(k)] - std::exp(logs.at[at(k)]) * sum;
        }
      });
      const double n = double(s[axis]);
      EXPECT_TRUE(near(here.run<op::softmax_grad>({y, dy}, along(axis)).at(0), dx, here.roundings(n + 4) * (2 * n + 2))) << axis;
      EXPECT_TRUE(near(here.run<op::log_softmax_grad>({logs, dy}, along(axis)).at(0), dl, here.roundings(n + 8) * (2 * n + 2))) << axis;
    }
}
TEST_P(softmax, edges_infinity_nan_and_large_numbers) {
  const auto& here = *this;
  const host x({5, 2}, here.type, {-infinity, 0, -infinity, -infinity, nan, 0, 0x1p100, 0x1p100, -0x1p100, 0});
  EXPECT_TRUE(same(here.run<op::softmax>({x}, along(1)).at(0), {0, 1, nan, nan, nan, nan, 0.5, 0.5, 0, 1}));
  const double half = rounded(here.type, -std::log(2.0));
  const auto y = here.run<op::log_softmax>({host({2, 2}, here.type, {0, 0, -infinity, 3})}, along(1));
  EXPECT_TRUE(near(y.at(0), {half, half, -infinity, 0}, here.roundings(4)));
}

}  // namespace softmax_test
}  // namespace isotope::op_test
