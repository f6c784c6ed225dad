// labels: subgroups
#include "harness.hpp"

#include <isotope/op/top_k.hpp>

#include <algorithm>
#include <numeric>

namespace isotope::op_test {
namespace top_k_test {

class top_k : public op_test {};
INSTANTIATE_TEST_SUITE_P(, top_k, everywhere(), target_name);

attributes of(std::int64_t k) { return op::top_k::constants{.k = k}; }
TEST_P(top_k, gives_the_first_elements_of_a_sort_and_their_indices) {
  const auto& here = *this;
  const std::int64_t sizes[][3] = {{1, 1, 1}, {3, 2, 2}, {2, 7, 3}, {5, 67, 67}, {2, 1031, 9}, {70, 33, 4}};
  for (const auto& [rows, n, k] : sizes) {
    const host x = random({rows, n}, here.type, 1);
    std::vector<double> values, places;
    for (std::int64_t r = 0; r < rows; ++r) {
      std::vector<std::int64_t> order(static_cast<std::size_t>(n));
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), [&](auto a, auto b) {
        const double va = x[r * n + a], vb = x[r * n + b];
        return va > vb || (va == vb && a < b);
      });
      for (std::int64_t i = 0; i < k; ++i)
        values.push_back(x[r * n + order[std::size_t(i)]]), places.push_back(double(order[std::size_t(i)]));
    }
    const auto y = here.run<op::top_k>({x}, of(k));
    EXPECT_TRUE(same(y.at(0), values)) << n;
    EXPECT_TRUE(same(y.at(1), places)) << n;
    EXPECT_EQ(y.at(1).type, dtype::i32);
  }
}
TEST_P(top_k, the_first_of_equals_comes_first_and_nan_above_all) {
  const auto& here = *this;
  const host x({3, 6}, here.type, {1, 2, 2, 1, 2, 1, -0.0, 0, -infinity, -0.0, nan, infinity, nan, 3, nan, 5, 3, 4});
  const auto y = here.run<op::top_k>({x}, of(4));
  EXPECT_TRUE(same(y.at(0), {2, 2, 2, 1, nan, infinity, 0, 0, nan, nan, 5, 4}));
  EXPECT_TRUE(same(y.at(1), {1, 2, 4, 0, 4, 5, 0, 1, 0, 2, 3, 5}));
}
TEST(top_k_refused, where_a_row_has_no_k_elements) {
  for (const std::int64_t k : {-1, 0, 4}) {
    tape t(dtype::f32);
    const auto x = t.g.add_value({2, 3}, dtype::f32, value_kind::input);
    t.apply(rules<op::top_k>, std::array{x}, of(k), place::current());
    EXPECT_FALSE(t.ok()) << k;
  }
}

}  // namespace top_k_test
}  // namespace isotope::op_test
