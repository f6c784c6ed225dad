#include <isotope/backend/session/initial_tensor.hpp>
#include <isotope/core/initialize.hpp>
#include <isotope/core/philox.hpp>

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

namespace iso = isotope;

namespace initialize_test {

TEST(normal, numbers_are_those_of_the_formula_by_libm) {
  std::vector<std::uint32_t> words{0,           1,           2,           0x1fff'ffff, 0x2000'0000, 0x3fff'ffff, 0x4000'0000,
                                   0x7fff'ffff, 0x8000'0000, 0xb504'f333, 0xbfff'ffff, 0xffff'fffe, 0xffff'ffff};
  for (std::uint64_t i = 0; i < 5000; ++i)
    for (const std::uint32_t w : iso::philox(1, i, 0, 0)) words.push_back(w);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint32_t w0 = words[i], w1 = words[words.size() - 1 - i];
    const double length = std::sqrt(-2 * std::log((double(w0) + 0.5) * 0x1p-32)),
                 angle = 2 * std::numbers::pi * ((double(w1) + 0.5) * 0x1p-32);
    const auto p = iso::normal::pair(w0, w1);
    // Rounding the angle moves the point by 2 pi 2^-53 of the length. For u near 1, the argument of libm's logarithm is exact, while ours loses a bit.
    ASSERT_NEAR(p.cos, length * std::cos(angle), 0x1p-49 * length) << w0 << ", " << w1;
    ASSERT_NEAR(p.sin, length * std::sin(angle), 0x1p-49 * length) << w0 << ", " << w1;
  }
}

/// The bits are the same on every machine and compiler, so that initial values can be compared.
TEST(normal, bits_are_pinned) {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325;
  double x[iso::initial_run];
  for (std::uint64_t run = 0; run < 256; ++run) {
    iso::initial_values(iso::init::normal(0.02), 1, 7, run, x);
    for (const double v : x) hash = (hash ^ std::bit_cast<std::uint64_t>(v)) * 0x100'0000'01b3;
  }
  EXPECT_EQ(hash, 14728296735695437946u);
}

// For n = 2^20 the standard deviation of the mean is 2^-10, that of the variance sqrt(2) 2^-10, that of the share beyond 3 is sqrt(0.0027 / n). The bounds are
// five deviations.
TEST(normal, numbers_have_the_distribution) {
  std::vector<float> x(1 << 20);
  iso::fill_initial(iso::init::normal(1), 3, 11, x);
  double sum = 0, squares = 0, beyond = 0;
  for (const float v : x) sum += v, squares += double(v) * v, beyond += std::fabs(v) > 3 ? 1 : 0;
  const auto n = double(x.size());
  EXPECT_NEAR(sum / n, 0, 5 * 0x1p-10);
  EXPECT_NEAR(squares / n, 1, 5 * std::numbers::sqrt2 * 0x1p-10);
  EXPECT_NEAR(beyond / n, 0.0026998, 5 * std::sqrt(0.0027 / n));
}

TEST(initial_values, depend_on_the_element_alone) {
  const auto how = iso::init::normal(0.5);
  std::vector<float> longer(1'000'003), shorter(77);
  iso::fill_initial(how, 5, 9, longer);
  iso::fill_initial(how, 5, 9, shorter);
  for (std::size_t i = 0; i < shorter.size(); ++i) ASSERT_EQ(longer[i], shorter[i]) << i;
  iso::for_initial_runs(how, 5, 9, std::int64_t(longer.size()), 15'000, 16'000, [&](std::int64_t i, const double* run, std::int64_t some) {
    for (std::int64_t k = 0; k < some; ++k) ASSERT_EQ(longer[std::size_t(i + k)], float(run[k])) << i + k;
  });
}
TEST(initial_values, of_a_constant_are_that) {
  std::vector<float> x(100, 3);
  iso::fill_initial(iso::init::ones, 1, 1, x);
  for (const float v : x) EXPECT_EQ(v, 1);
  iso::fill_initial(iso::init::zeros, 1, 1, x);
  for (const float v : x) EXPECT_EQ(v, 0);
}

}  // namespace initialize_test
