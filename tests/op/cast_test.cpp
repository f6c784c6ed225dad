#include "harness.hpp"

namespace isotope::op_test {
namespace cast_test {

class cast : public op_test {
 public:
  host to(dtype t, const host& x) const { return run<op::cast>({x}, op::cast::constants{.to = t}).at(0); }
};
INSTANTIATE_TEST_SUITE_P(, cast, everywhere(), target_name);

host every(dtype half) {
  std::vector<double> x;
  for (std::uint64_t i = 0; i < 0x10000; ++i) x.push_back(decode(half, reinterpret_cast<const std::byte*>(&i)));
  return {{0x10000}, half, std::move(x)};
}
TEST_P(cast, every_16_bit_number_widens_exactly_and_comes_back) {
  const auto& here = *this;
  for (dtype half : {dtype::bf16, dtype::f16})
    for (dtype wide : {dtype::f32, dtype::f64}) {
      const host x = every(half), y = here.to(wide, x);
      EXPECT_TRUE(same(y, x.at));
      EXPECT_TRUE(same(here.to(half, y), x.at));
    }
}
/// The number of the format that is nearest to x, ties to even, by bisection over the bit patterns of non-negative numbers.
double nearest(dtype half, double x) {
  const auto at = [&](std::uint64_t i) { return decode(half, reinterpret_cast<const std::byte*>(&i)); };
  const std::uint32_t top = half == dtype::bf16 ? 0x7f80 : 0x7c00;  // infinity
  std::uint32_t low = 0, high = top;
  while (high - low > 1) {
    const auto middle = (low + high) / 2;
    if (at(middle) <= x) low = middle;
    else high = middle;
  }
  if (x >= at(top)) return infinity;
  const double above = high == top ? 2 * at(low) - at(low - 1) : at(high);  // infinity counts as the next number
  const double down = x - at(low), up = above - x;
  return down < up || (down == up && low % 2 == 0) ? at(low) : at(high);
}
TEST_P(cast, narrowing_rounds_to_nearest_even_around_every_tie) {
  const auto& here = *this;
  for (dtype half : {dtype::bf16, dtype::f16})
    for (dtype wide : {dtype::f32, dtype::f64}) {
      std::vector<double> x, expected;
      const host h = every(half);
      for (std::size_t i = 0; i + 1 < (half == dtype::bf16 ? 0x7f80u : 0x7c00u); i += 3) {
        const double tie = (h.at[i] + h.at[i + 1]) / 2;
        const double below = wide == dtype::f32 ? double(std::nextafter(float(tie), 0.0f)) : std::nextafter(tie, 0.0);
        const double above = wide == dtype::f32 ? double(std::nextafter(float(tie), 1e38f)) : std::nextafter(tie, 1e300);
        for (double v : {tie, below, above}) {
          x.push_back(v);
          expected.push_back(nearest(half, v));
          x.push_back(-v);
          expected.push_back(-nearest(half, v));
        }
      }
      EXPECT_TRUE(same(here.to(half, host({std::int64_t(x.size())}, wide, x)), expected)) << name_of(half) << " from " << name_of(wide);
    }
}
TEST_P(cast, overflow_gives_infinity_and_nan_stays) {
  const auto& here = *this;
  const host x({6}, dtype::f64, {1e300, -1e300, nan, infinity, 3.4e38, 65520});
  EXPECT_TRUE(
      same(here.to(dtype::bf16, x), {infinity, -infinity, nan, infinity, nearest(dtype::bf16, 3.4e38), nearest(dtype::bf16, 65520)}));
  EXPECT_TRUE(same(here.to(dtype::f32, x), {infinity, -infinity, nan, infinity, double(3.4e38f), 65520}));
  EXPECT_TRUE(same(here.to(dtype::f16, x), {infinity, -infinity, nan, infinity, infinity, infinity}));
}
TEST_P(cast, floats_become_integers_toward_zero_with_ends_and_nan_to_zero) {
  const auto& here = *this;
  for (dtype wide : {dtype::f32, dtype::f64}) {
    const host x({9}, wide, {1.9, -1.9, 0.5, -0.0, 3e9, -3e9, infinity, -infinity, nan});
    EXPECT_TRUE(same(here.to(dtype::i32, x), {1, -1, 0, 0, 2147483647, -2147483648.0, 2147483647, -2147483648.0, 0}));
    EXPECT_TRUE(same(here.to(dtype::u8, x), {1, 0, 0, 0, 255, 0, 255, 0, 0}));
    EXPECT_TRUE(same(here.to(dtype::boolean, x), {1, 1, 1, 0, 1, 1, 1, 1, 1}));
  }
}
TEST_P(cast, integers_become_floats_rounded_once) {
  const auto& here = *this;
  const host x({5}, dtype::i32, {0, -7, 16777217, 2147483647, -2147483648.0});
  EXPECT_TRUE(same(here.to(dtype::f64, x), x.at));
  EXPECT_TRUE(same(here.to(dtype::f32, x), {0, -7, 16777216, 2147483648.0, -2147483648.0}));
  // 2^24 + 2^16 + 1 is above the tie between the bf16 neighbours 2^24 and 2^24 + 2^17. If it were rounded to f32 first, it would be on the tie.
  EXPECT_TRUE(same(here.to(dtype::bf16, host({1}, dtype::i32, {16777216 + 65537})), {16777216 + 131072}));
}
TEST_P(cast, integers_of_other_formats_take_the_nearest_end) {
  const auto& here = *this;
  const host x({6}, dtype::i64, {-7, 300, 0x1p40, -0x1p40, 0x1p62, -0x1p63});
  EXPECT_TRUE(same(here.to(dtype::f64, x), x.at));
  EXPECT_TRUE(same(here.to(dtype::f32, x), x.at));
  EXPECT_TRUE(same(here.to(dtype::i32, x), {-7, 300, 2147483647, -2147483648.0, 2147483647, -2147483648.0}));
  EXPECT_TRUE(same(here.to(dtype::u8, x), {0, 255, 255, 0, 255, 0}));
  EXPECT_TRUE(same(here.to(dtype::u32, x), {0, 300, 4294967295.0, 0, 4294967295.0, 0}));
  EXPECT_TRUE(same(here.to(dtype::boolean, x), {1, 1, 1, 1, 1, 1}));
  EXPECT_TRUE(same(here.to(dtype::i64, host({5}, dtype::f64, {-7.9, 0x1p62, -0x1p63, -infinity, nan})), {-7, 0x1p62, -0x1p63, -0x1p63, 0}));
  EXPECT_TRUE(same(here.to(dtype::i64, host({3}, dtype::i32, {-1, 5, -2147483648.0})), {-1, 5, -2147483648.0}));
}
constexpr dtype every_format[dtype_count] = {dtype::f32, dtype::bf16, dtype::f16, dtype::f64, dtype::i32,
                                             dtype::i64, dtype::u8,   dtype::u16, dtype::u32, dtype::boolean};
/// The smallest and the largest number of an integer format.
std::pair<double, double> ends(dtype t) {
  switch (t) {
    case dtype::i32: return {-0x1p31, 0x1p31 - 1};
    case dtype::i64: return {-0x1p63, 0x1p63};  // 2^63 - 1, as a double
    case dtype::u8: return {0, 255};
    case dtype::u16: return {0, 65535};
    case dtype::u32: return {0, 0x1p32 - 1};
    default: return {0, 1};
  }
}
bool holds(dtype t, double x) {
  if (t == dtype::f64) return true;
  if (t == dtype::f32) return std::isnan(x) || double(float(x)) == x;
  if (is_floating(t)) return !std::isfinite(x) || std::copysign(nearest(t, std::fabs(x)), x) == x;
  return x == std::trunc(x) && x >= ends(t).first && x <= ends(t).second && x != 0x1p63 && !(x == 0 && std::signbit(x));
}
/// x in format t, as the documentation of iso::cast defines it.
double expected(dtype t, double x) {
  if (t == dtype::f64) return x;
  if (t == dtype::f32) return double(float(x));
  if (is_floating(t)) return std::isnan(x) ? x : std::copysign(nearest(t, std::fabs(x)), x);
  if (t == dtype::boolean) return x != 0 ? 1 : 0;
  if (std::isnan(x)) return 0;
  return std::min(std::max(std::trunc(x), ends(t).first), ends(t).second) + 0.0;
}
TEST_P(cast, every_pair_of_formats) {
  const auto& here = *this;
  const std::vector<double> numbers = {0,      -0.0,    1,           -1,         2,         0.5,    -0.5,    1.5,      2.5,      -2.5,
                                       127,    128,     254,         255,        256,       -129,   2047,    2049,     32767,    32768,
                                       65504,  65519,   65520,       65535,      65536,     -65536, 6e-8,    16777217, -8388609, 0x1p31 - 1,
                                       0x1p31, -0x1p31, -0x1p31 - 1, 0x1p32 - 1, 0x1p32,    0x1p53, 0x1p62,  -0x1p63,  0x1p63,   1e30,
                                       -1e30,  1e300,   -1e300,      infinity,   -infinity, nan,    1.0 / 3, 100.25,   -65505,   3.4e38};
  for (const dtype from : every_format) {
    std::vector<double> x;
    for (const double v : numbers)
      if (holds(from, v)) x.push_back(v);
    ASSERT_GE(x.size(), from == dtype::boolean ? 2u : 7u) << name_of(from);
    for (const dtype to : every_format) {
      std::vector<double> y;
      for (const double v : x) y.push_back(expected(to, v));
      EXPECT_TRUE(same(here.to(to, host({std::int64_t(x.size())}, from, x)), y)) << name_of(to) << " from " << name_of(from);
    }
  }
}
TEST_P(cast, every_16_bit_source_to_every_format) {
  const auto& here = *this;
  for (const dtype from : {dtype::u16, dtype::bf16, dtype::f16}) {
    const host x = every(from);
    for (const dtype to : every_format) {
      std::vector<double> y;
      for (const double v : x.at) y.push_back(expected(to, v));
      EXPECT_TRUE(same(here.to(to, x), y)) << name_of(to) << " from " << name_of(from);
    }
  }
}
TEST_P(cast, any_strides_and_sizes) {
  const auto& here = *this;
  for (std::int64_t n : {0, 1, 17, 64, 65}) {
    const host x = laid_out(random({n, 5}, dtype::f32, 1), {1, 0}, 2);
    EXPECT_TRUE(same(here.to(dtype::f64, x), x.at));
  }
}

}  // namespace cast_test
}  // namespace isotope::op_test
