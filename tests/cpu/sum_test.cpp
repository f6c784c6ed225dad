#include <isotope/kernels/cpu/math/convert.hpp>
#include <isotope/kernels/cpu/math/sum.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sum_test {

namespace math = isotope::cpu::math;
using isotope::bfloat16;
constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
const std::int64_t sizes[] = {0, 1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 767, 768, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 6145, 100'003};

/// Numbers of mixed sign and magnitude, the same in every run.
std::vector<float> noise(std::int64_t n, std::uint32_t seed = 1) {
  std::vector<float> x(static_cast<std::size_t>(n));
  for (float& v : x) {
    seed = seed * 1664525u + 1013904223u;
    v = float(std::int32_t(seed)) * 0x1p-31f * std::ldexp(1.0f, int(seed >> 29));
  }
  return x;
}

/// The bound that the header states, plus the rounding of the terms.
double bound(std::int64_t n, double magnitude, int term_roundings, double unit) {
  return (40 + std::ceil(std::log2(double(n) / 1024 + 1)) + term_roundings) * unit * magnitude;
}

template <class F> void expect_close(std::int64_t n, double actual, int term_roundings, const F& term, double unit = 0x1p-24) {
  long double exact = 0;
  double magnitude = 0;
  for (std::int64_t i = 0; i < n; ++i)
    exact += static_cast<long double>(term(std::size_t(i))), magnitude += std::fabs(term(std::size_t(i)));
  const double error = double(std::fabs(static_cast<long double>(actual) - exact)), limit = bound(n, magnitude, term_roundings, unit);
  EXPECT_TRUE(error <= limit) << "n " << n << ": " << actual << " and " << double(exact) << ", limit " << limit;
}

TEST(sum, stays_within_its_stated_bound) {
  for (const std::int64_t n : sizes) {
    const auto x = noise(n), y = noise(n, 2);
    expect_close(n, math::sum(x.data(), n), 0, [&](std::size_t i) { return double(x[i]); });
    expect_close(n, math::sum_squares(x.data(), n), 1, [&](std::size_t i) { return double(x[i]) * double(x[i]); });
    expect_close(n, math::dot(x.data(), y.data(), n), 1, [&](std::size_t i) { return double(x[i]) * double(y[i]); });
    // The difference is rounded once, and its relative error counts twice in the square.
    expect_close(n, math::sum_squares_about(x.data(), n, 0.7f), 3, [&](std::size_t i) {
      const double d = double(x[i]) - double(0.7f);
      return d * d;
    });
    const std::vector<double> wide(x.begin(), x.end());
    // The long double reference has an error of 2^-64.
    expect_close(n, math::sum(wide.data(), n), 0, [&](std::size_t i) { return wide[i]; }, 0x1p-53);
  }
}

TEST(sum, of_many_equal_terms_loses_far_less_than_a_running_sum) {
  const std::int64_t n = 1 << 22;
  const std::vector<float> x(static_cast<std::size_t>(n), 0.1f);
  float running = 0;
  for (const float v : x) running += v;
  const double exact = double(0.1f) * double(n);
  // (40 + 11) 2^-24 = 3.1e-6 of the sum.
  EXPECT_TRUE(std::fabs(double(math::sum(x.data(), n)) - exact) <= 3.1e-6 * exact);
  EXPECT_FALSE(std::fabs(double(running) - exact) <= 3.1e-6 * exact) << "the comparison must notice a bad sum";
}

TEST(sum, depends_on_the_values_alone_not_on_the_address_or_what_follows) {
  for (const std::int64_t n : sizes) {
    const auto x = noise(n);
    const float expected = math::sum(x.data(), n);
    for (std::size_t offset = 0; offset < 17; offset += 3) {
      std::vector<float> moved(offset + std::size_t(n) + 33, nan);
      std::copy(x.begin(), x.end(), moved.begin() + std::ptrdiff_t(offset));
      ASSERT_EQ(math::sum(moved.data() + offset, n), expected) << n << " at " << offset;
    }
  }
}

TEST(sum, follows_the_documented_order) {
  // A scalar version of the documented order: 64 running sums per chunk of 2048, which are folded by halves, and chunks that are added as a binary tree.
  const std::int64_t n = 5 * 2048 + 771;
  const auto x = noise(n);
  std::vector<float> chunks;
  for (std::int64_t begin = 0; begin < n; begin += 2048) {
    float lane[64] = {};
    for (std::int64_t i = begin; i < n && i < begin + 2048; ++i) lane[(i - begin) % 64] += x[std::size_t(i)];
    for (int half = 32; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
    }
    chunks.push_back(lane[0]);
  }
  ASSERT_EQ(chunks.size(), 6u);
  const float four = (chunks[0] + chunks[1]) + (chunks[2] + chunks[3]), two = chunks[4] + chunks[5];
  EXPECT_EQ(math::sum(x.data(), n), four + two);
}

TEST(sum, takes_bf16_rows_as_their_f32_values) {
  for (const std::int64_t n : sizes) {
    const auto x = noise(n);
    std::vector<bfloat16> h(x.size());
    std::vector<float> wide(x.size());
    math::convert(x.data(), h.data(), n);
    math::convert(h.data(), wide.data(), n);
    EXPECT_EQ(math::sum(h.data(), n), math::sum(wide.data(), n));
    EXPECT_EQ(math::dot(h.data(), x.data(), n), math::dot(wide.data(), x.data(), n));
    EXPECT_EQ(math::max(h.data(), n), math::max(wide.data(), n));
  }
}

TEST(sum, carries_nan_and_infinity_from_every_place) {
  for (const std::int64_t n : {1, 5, 64, 100, 2500}) {
    for (std::int64_t at = 0; at < n; ++at) {
      auto x = noise(n);
      x[std::size_t(at)] = nan;
      ASSERT_TRUE(std::isnan(math::sum(x.data(), n))) << at << " of " << n;
      ASSERT_TRUE(std::isnan(math::max(x.data(), n))) << at << " of " << n;
      x[std::size_t(at)] = infinity;
      ASSERT_EQ(math::sum(x.data(), n), infinity);
      ASSERT_EQ(math::max(x.data(), n), infinity);
    }
  }
}

TEST(max, finds_the_largest_wherever_it_is) {
  EXPECT_EQ(math::max(static_cast<const float*>(nullptr), 0), -infinity);
  for (const std::int64_t n : {1, 3, 16, 64, 65, 200, 2049}) {
    for (std::int64_t at = 0; at < n; ++at) {
      std::vector<float> x(static_cast<std::size_t>(n), -5.0f);
      x[std::size_t(at)] = -4.0f;
      ASSERT_EQ(math::max(x.data(), n), -4.0f) << at << " of " << n;
    }
  }
  const std::vector<float> none(40, -infinity);
  EXPECT_EQ(math::max(none.data(), 40), -infinity);
}

TEST(convert, bf16_to_f32_and_back_is_the_identity_for_all_65536_values) {
  std::vector<bfloat16> h(65536), back(h.size());
  std::vector<float> wide(h.size());
  for (std::size_t i = 0; i < h.size(); ++i) h[i].bits = std::uint16_t(i);
  math::convert(h.data(), wide.data(), std::int64_t(h.size()));
  math::convert(wide.data(), back.data(), std::int64_t(h.size()));
  for (std::size_t i = 0; i < h.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]), std::uint32_t(i) << 16);
    const bool is_nan = (i & 0x7fffu) > 0x7f80u;
    ASSERT_EQ(back[i].bits, is_nan ? i | 0x40u : i);
  }
}

TEST(convert, f32_to_bf16_rounds_to_the_nearer_neighbour_and_ties_to_even) {
  // For every bf16 value: the neighbours of the value, and numbers just below, at and just above the midpoint to the next value.
  std::vector<float> x;
  std::vector<std::uint16_t> expected;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    if ((i & 0x7fffu) >= 0x7f80u) continue;
    const std::uint32_t low = i << 16;
    const struct {
      std::uint32_t bits, rounded;
    } cases[] = {{low, i}, {low + 1, i}, {low + 0x7fff, i}, {low + 0x8000, i + (i & 1)}, {low + 0x8001, i + 1}, {low + 0xffff, i + 1}};
    for (const auto& c : cases) x.push_back(std::bit_cast<float>(c.bits)), expected.push_back(std::uint16_t(c.rounded));
  }
  std::vector<bfloat16> y(x.size());
  math::convert(x.data(), y.data(), std::int64_t(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i].bits, expected[i]) << x[i];
}

}  // namespace sum_test
