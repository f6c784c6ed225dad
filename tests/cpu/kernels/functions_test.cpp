// labels: slow
#include <isotope/kernels/cpu/native/all.hpp>
#include <isotope/kernels/cpu/portable/update.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "../ulp.hpp"

/// The functions of native element-wise kernels must have at most the errors that their headers state.
namespace functions_test {
using namespace isotope;
using isotope_test::ulp_error;
constexpr float infinity = std::numeric_limits<float>::infinity();

double sigmoid64(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
double gelu_exponent(double x) { return std::sqrt(8 / M_PI) * (x + 0.044715 * x * x * x); }
double bounded(double x, double most) { return std::isnan(x) ? x : std::fmin(std::fmax(x, -most), most); }
double silu64(double x) { return std::isinf(x) && x < 0 ? -0.0 : x * sigmoid64(x); }
double silu_slope64(double x) { return sigmoid64(bounded(x, 700)) * (1 + bounded(x, 700) * sigmoid64(-bounded(x, 700))); }
double gelu64(double x) { return std::isinf(x) && x < 0 ? -0.0 : x * sigmoid64(gelu_exponent(x)); }
double gelu_erf64(double x) { return std::isinf(x) && x < 0 ? -0.0 : 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double gelu_erf_slope64(double x) {
  const double v = bounded(x, 30);
  return 0.5 * std::erfc(-v / std::sqrt(2.0)) + v * std::exp(-v * v / 2) / std::sqrt(2 * M_PI);
}
double gelu_slope64(double x) {
  const double v = bounded(x, 20), u = gelu_exponent(v);
  return sigmoid64(u) * (1 + v * sigmoid64(-u) * std::sqrt(8 / M_PI) * (1 + 3 * 0.044715 * v * v));
}

/// Tests every 499th float, every bf16 number, and every float near the roots of the derivatives. `slack` is an additional absolute error. Operands after the
/// first are ones.
template <class Op> void check(double (*truth)(double), double ulps, double slack = 0) {
  if constexpr (requires { sizeof(cpu::kernel<Op, precision::f32, kernels::native>); }) {
    constexpr std::size_t size = 4096;
    std::vector<float> x(size), y(size), ones(size, 1.0f);
    double worst = 0;
    float worst_x = 0;
    const auto sweep = [&](std::uint64_t first, std::uint64_t last, std::uint64_t stride) {
      for (std::uint64_t p = first; p < last;) {
        std::size_t n = 0;
        for (; n < size && p < last; p += stride) x[n++] = std::bit_cast<float>(std::uint32_t(p));
        const void* const in[] = {x.data(), ones.data()};
        cpu::kernel<Op, precision::f32, kernels::native>::block(in, y.data(), std::int64_t(n), 0);
        for (std::size_t i = 0; i < n; ++i) {
          const double wanted = truth(double(x[i])), error = ulp_error(y[i], wanted);
          if (std::fabs(double(y[i]) - wanted) <= slack || error <= worst) continue;
          worst = error, worst_x = x[i];
        }
      }
    };
    sweep(0, std::uint64_t(1) << 32, 499);
    sweep(0, std::uint64_t(1) << 32, 1 << 16);
    for (const float root : {-0.7524614f, -0.7517915f, -1.2784645f}) {
      const std::uint64_t at = std::bit_cast<std::uint32_t>(root);
      sweep(at - 50'000, at + 50'000, 1);
    }
    EXPECT_TRUE(worst <= ulps) << Op::name << " of " << worst_x << " is off by " << worst << " ULP, stated are " << ulps;
  } else {
    GTEST_SKIP() << cpu::native::reason;
  }
}

TEST(native_functions, exp_keeps_its_stated_error) {
  check<op::exp>([](double x) { return std::exp(x); }, 1.25);
}
TEST(native_functions, log_keeps_its_stated_error) {
  check<op::log>([](double x) { return std::log(x); }, 1);
}
TEST(native_functions, sqrt_is_the_nearest_number) {
  check<op::sqrt>([](double x) { return std::sqrt(x); }, 0.5);
}
TEST(native_functions, tanh_keeps_its_stated_error) {
  check<op::tanh>([](double x) { return std::tanh(x); }, 3.5);
}
TEST(native_functions, sigmoid_keeps_its_stated_error) { check<op::sigmoid>(sigmoid64, 3); }
TEST(native_functions, silu_keeps_its_stated_error) { check<op::silu>(silu64, 4); }
TEST(native_functions, gelu_tanh_keeps_its_stated_error) { check<op::gelu_tanh>(gelu64, 3.5); }
/// Tests gelu_erf of all bf16 numbers: errors are at most 2^-15 of the result.
template <class Op> void check_gelu_of_bf16() {
  if constexpr (requires { sizeof(cpu::kernel<Op, precision::bf16, kernels::native>); }) {
    double worst = 0;
    for (std::uint32_t high = 0; high < 1 << 16; high += 16) {
      float x[16], y[16];
      for (std::uint32_t i = 0; i < 16; ++i) x[i] = std::bit_cast<float>((high + i) << 16);
      const void* const in[] = {x};
      cpu::kernel<Op, precision::bf16, kernels::native>::block(in, y, 16, 0);
      for (int i = 0; i < 16; ++i) {
        const double wanted = gelu_erf64(double(x[i]));
        if (std::isnan(wanted) || std::isinf(wanted) || wanted == 0) {
          EXPECT_TRUE(std::isnan(wanted) ? std::isnan(y[i]) : double(y[i]) == wanted && std::signbit(y[i]) == std::signbit(wanted)) << x[i];
        } else if (std::fabs(wanted) >= 0x1p-126) {
          worst = std::fmax(worst, std::fabs(double(y[i]) / wanted - 1));
        } else {
          EXPECT_TRUE(std::fabs(double(y[i]) - wanted) <= 0x1p-140) << x[i];
        }
      }
    }
    EXPECT_TRUE(worst <= 0x1p-15) << worst;
  }
}
TEST(native_functions, gelu_erf_of_bf16_keeps_its_stated_error) { check_gelu_of_bf16<op::gelu_erf>(); }
TEST(native_functions, gelu_erf_keeps_its_stated_error) { check<op::gelu_erf>(gelu_erf64, 4); }
TEST(native_functions, derivatives_keep_their_stated_errors) {
  check<op::silu_grad>(silu_slope64, 4, 0x1p-23);
  check<op::gelu_tanh_grad>(gelu_slope64, 4, 0x1p-23);
  check<op::gelu_erf_grad>(gelu_erf_slope64, 4, 0x1p-23);
}

/// Tests all bf16 numbers: errors are at most 2^-15 of `magnitude`, which is 1/128 of the rounding to bf16.
template <class Op> void check_bf16(double (*truth)(double), double (*magnitude)(double)) {
  if constexpr (requires { sizeof(cpu::kernel<Op, precision::bf16, kernels::native>); }) {
    constexpr std::size_t size = 1 << 16;
    std::vector<float> x(size), y(size), ones(size, 1.0f);
    for (std::uint32_t i = 0; i < size; ++i) x[i] = std::bit_cast<float>(i << 16);
    const void* const in[] = {x.data(), ones.data()};
    cpu::kernel<Op, precision::bf16, kernels::native>::block(in, y.data(), std::int64_t(size), 0);
    for (std::size_t i = 0; i < size; ++i) {
      const double wanted = truth(double(x[i]));
      if (std::isnan(wanted) || std::isinf(wanted)) {
        EXPECT_EQ(std::isnan(y[i]), std::isnan(wanted)) << x[i];
        continue;
      }
      // 2^-140 allows for results below 2^-133, the smallest number of the format.
      EXPECT_LE(std::fabs(double(y[i]) - wanted), 0x1p-15 * magnitude(double(x[i])) + 0x1p-140)
          << Op::name << " of " << x[i] << ": " << y[i] << ", not " << wanted;
    }
  } else {
    GTEST_SKIP() << cpu::native::reason;
  }
}
TEST(native_functions, short_ones_of_bf16_keep_their_stated_errors) {
  check_bf16<op::gelu_tanh>(gelu64, [](double x) { return std::fabs(gelu64(x)); });
  check_bf16<op::gelu_tanh_grad>(gelu_slope64, [](double x) {
    const double u = gelu_exponent(bounded(x, 20));
    return 1 + std::fabs(u) * 3 * sigmoid64(u) * sigmoid64(-u);
  });
}

TEST(native_functions, weights_of_bf16_keep_their_stated_error) {
  using cpu::native::vector;
  constexpr auto lanes = std::uint32_t(cpu::native::lanes);
  if constexpr (!cpu::native::lanewise::has_pieces) GTEST_SKIP() << "needs a build for AVX-512";
  double worst = 0;
  for (std::uint32_t p = 0x3300'0000; p < 0x42c8'0000; p += 2 * lanes * 997) {  // -2^-25 to -100
    vector x[2];
    for (std::uint32_t i = 0; i < 2 * lanes; ++i) x[i / lanes][i % lanes] = -std::bit_cast<float>(p + i * 997);
    vector y[2] = {x[0], x[1]};
    cpu::native::lanewise::short_weights(y);
    for (std::uint32_t i = 0; i < 2 * lanes; ++i) {
      const double v = double(x[i / lanes][i % lanes]), given = double(y[i / lanes][i % lanes]);
      if (v < -87) EXPECT_EQ(given, 0) << v;
      else worst = std::fmax(worst, std::fabs(given / std::exp(v) - 1));
    }
  }
  EXPECT_LE(worst, 0x1p-16);
  vector y[1] = {};
  y[0][0] = -infinity, y[0][1] = std::numeric_limits<float>::quiet_NaN();
  cpu::native::lanewise::short_weights(y);
  EXPECT_TRUE(y[0][0] == 0 && std::isnan(y[0][1]) && y[0][2] == 1);
}

template <class Op> void check_edges(float at_zero, float at_minus_infinity, float at_infinity) {
  if constexpr (requires { sizeof(cpu::kernel<Op, precision::f32, kernels::native>); }) {
    const float x[] = {0.0f, -0.0f, -infinity, infinity, std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()};
    float y[6];
    const void* const in[] = {x};
    cpu::kernel<Op, precision::f32, kernels::native>::block(in, y, 6, 0);
    const float wanted[] = {at_zero, at_zero == 0 ? -at_zero : at_zero, at_minus_infinity, at_infinity};
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(std::bit_cast<std::uint32_t>(y[i]), std::bit_cast<std::uint32_t>(wanted[i])) << Op::name << " of " << x[i] << ": " << y[i];
    EXPECT_TRUE(std::isnan(y[4]) && std::isnan(y[5])) << Op::name;
  }
}
TEST(native_functions, are_right_at_zero_infinity_and_nan) {
  check_edges<op::exp>(1, 0, infinity);
  check_edges<op::tanh>(0, -1, 1);
  check_edges<op::sigmoid>(0.5f, 0, 1);
  check_edges<op::silu>(0, -0.0f, infinity);
  check_edges<op::gelu_tanh>(0, -0.0f, infinity);
  check_edges<op::gelu_erf>(0, -0.0f, infinity);
}

/// Numbers of all kinds in one call, one in 2000 of them subnormal or NaN; then subnormals only.
TEST(native_functions, bf16_is_rounded_as_the_format_says) {
  constexpr std::size_t size = 1021;  // pairs of vectors, a single vector, and a remainder
  std::vector<float> x(size);
  std::vector<bfloat16> y(size);
  std::uint32_t at = 1;
  for (int round = 0; round < 4000; ++round) {
    for (float& v : x) {
      at = at * 1664525u + 1013904223u;
      const bool special = round >= 3900 || at >> 21 == 0;
      v = std::bit_cast<float>(special ? (at & 0x807f'ffffu) | (round % 2 == 0 ? 0 : 0x7f80'0000u) : at);
    }
    cpu::math::convert(x.data(), y.data(), std::int64_t(size));
    for (std::size_t i = 0; i < size; ++i)
      ASSERT_EQ(y[i].bits, bfloat16(x[i]).bits) << std::hex << std::bit_cast<std::uint32_t>(x[i]) << ", place " << std::dec << i;
  }
}
TEST(native_functions, non_temporal_stores_are_rounded_the_same) {
  alignas(64) float x[512];
  alignas(64) std::uint16_t memory[640];
  auto* const y = reinterpret_cast<bfloat16*>(memory);
  for (int i = 0; i < 512; ++i) x[i] = std::bit_cast<float>(std::uint32_t(i) * 8388593u);
  for (const int n : {512, 128, 96, 1, 0})
    for (const int shift : {0, 1, 32}) {
      for (std::uint16_t& word : memory) word = 0x5555;
      cpu::portable::stream_rounded(x, y + shift, n);
      cpu::isa::fence_streams();
      for (int i = 0; i < 600; ++i) {
        const bool made = i >= shift && i < shift + n;
        ASSERT_EQ(memory[i], made ? bfloat16(x[i - shift]).bits : 0x5555) << n << " from " << shift << " on, place " << i;
      }
    }
}
}  // namespace functions_test
