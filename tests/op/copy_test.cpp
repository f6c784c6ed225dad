// Tests copy, concat, pad and fill, which compute nothing.
#include "harness.hpp"

namespace isotope::op_test {
namespace copy_test {

class moving : public op_test {};
INSTANTIATE_TEST_SUITE_P(, moving, everywhere(), target_name);

constexpr dtype formats[] = {dtype::f32, dtype::bf16, dtype::f16, dtype::f64, dtype::i32,
                             dtype::i64, dtype::u8,   dtype::u16, dtype::u32, dtype::boolean};

host numbers(const shape& s, dtype t, std::uint64_t seed) {
  host x = random(s, t == dtype::boolean ? dtype::f32 : t, seed, 0, t == dtype::boolean ? 2 : 100);
  x.type = t;
  for (double& v : x.at) v = rounded(t, std::floor(v));
  return x;
}
attributes at(std::int64_t axis) { return op::concat::constants{.axis = axis}; }
attributes padded(std::int64_t axis, std::int64_t first, std::int64_t size) {
  return op::pad::constants{.axis = axis, .first = first, .size = size};
}
TEST_P(moving, copy_makes_any_strides_dense_in_every_format) {
  const auto& here = *this;
  for (dtype t : formats)
    for (std::int64_t n : {0, 1, 13}) {
      const host x = laid_out(numbers({n, 3, 5}, t, 1), {2, 0, 1}, 1);
      const auto y = here.run<op::copy>({x});
      EXPECT_TRUE(same(y.at(0), x.at)) << name_of(t);
      EXPECT_TRUE(y[0].dense());
    }
}
TEST_P(moving, copy_keeps_special_numbers) {
  const auto& here = *this;
  const host x({6}, here.type, {infinity, -infinity, nan, -0.0, rounded(here.type, 0x1p-130), 0});
  const auto y = here.run<op::copy>({x});
  EXPECT_TRUE(same(y.at(0), x.at));
  EXPECT_TRUE(std::signbit(y[0][3]));
}
TEST_P(moving, concat_joins_tensors_of_any_strides_along_any_axis) {
  const auto& here = *this;
  for (dtype t : formats) {
    const host a = numbers({2, 3, 2}, t, 1), b = laid_out(numbers({2, 1, 2}, t, 2), {1, 2, 0}, 1), none = numbers({2, 0, 2}, t, 3);
    std::vector<double> expected;
    for (int i = 0; i < 2; ++i) {
      for (int k = 0; k < 6; ++k) expected.push_back(a[i * 6 + k]);
      for (int k = 0; k < 2; ++k) expected.push_back(b[i * 2 + k]);
    }
    EXPECT_TRUE(same(here.run<op::concat>({a, none, b}, at(1)).at(0), expected)) << name_of(t);
  }
  const host a = numbers({2, 3}, here.type, 1), b = numbers({4, 3}, here.type, 2);
  auto expected = a.at;
  expected.insert(expected.end(), b.at.begin(), b.at.end());
  EXPECT_TRUE(same(here.run<op::concat>({a, b}, at(0)).at(0), expected));
}
TEST_P(moving, pad_surrounds_with_zeros_in_every_format) {
  const auto& here = *this;
  for (dtype t : formats)
    for (std::int64_t first : {0, 1, 4}) {
      const host x = laid_out(numbers({2, 3, 2}, t, 1), {2, 1, 0});
      std::vector<double> expected(28, 0);
      for (std::int64_t i = 0; i < 2; ++i)
        for (std::int64_t k = 0; k < 6; ++k) expected[std::size_t(i * 14 + first * 2 + k)] = x[i * 6 + k];
      EXPECT_TRUE(same(here.run<op::pad>({x}, padded(1, first, 7)).at(0), expected)) << name_of(t);
    }
  EXPECT_TRUE(same(here.run<op::pad>({full({0}, here.type, 0)}, padded(0, 1, 3)).at(0), {0, 0, 0}));
}
TEST_P(moving, fill_writes_one_number_everywhere) {
  const auto& here = *this;
  for (dtype t : formats)
    for (std::int64_t n : {0, 1, 67}) {
      const double x = t == dtype::boolean ? 1 : 7;
      const auto y = here.run<op::fill>({}, op::fill::constants{.dims = {n, 3}, .format = t, .x = x});
      ASSERT_EQ(y.at(0).dims, (shape{n, 3}));
      EXPECT_TRUE(same(y[0], std::vector<double>(std::size_t(3 * n), x))) << name_of(t);
    }
}

}  // namespace copy_test
}  // namespace isotope::op_test
