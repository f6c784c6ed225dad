// Compares the element-wise functions on the device with f64.
#include <cmath>
#include <isotope/core/philox.hpp>

#include "../cpu/ulp.hpp"
#include "run_body.hpp"

/// The formulas compiled for the host, where fma rounds once, like on GPUs; software drivers round twice.
namespace on_host {
using number = float;
using word = std::uint32_t;
using flag = bool;
using code = unsigned;
inline float choose(bool c, float yes, float no) { return c ? yes : no; }
inline std::uint32_t choose(bool c, std::uint32_t yes, std::uint32_t no) { return c ? yes : no; }
inline std::uint32_t floatBitsToUint(float x) { return std::bit_cast<std::uint32_t>(x); }
inline float uintBitsToFloat(std::uint32_t u) { return std::bit_cast<float>(u); }
using std::exp2;
using std::fma;
using std::sqrt;
#define FORMULA inline
#include <isotope/kernels/vulkan/body/formulas.glsl>
// These formulas are only in generated bodies.
#include <isotope/kernels/vulkan/body/erf.glsl>
#include <isotope/kernels/vulkan/body/pow.glsl>
#include <isotope/kernels/vulkan/body/rsqrt.glsl>
#include <isotope/kernels/vulkan/body/sine.glsl>
#undef FORMULA
}  // namespace on_host

namespace isotope::vulkan_test {
namespace formulas_test {

constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

double logistic(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
double gelu_exponent(double x) { return std::sqrt(2 / M_PI) * 2 * (x + 0.044715 * x * x * x); }
double within(double x, double bound) { return x > bound ? bound : x < -bound ? -bound : x; }
double gated(double x, double gate) { return gate == 0 && !std::isnan(x) ? 0 : x * gate; }  // the limit at -infinity

struct function {
  const op_info* op;
  double (*truth)(double);  // the formula in f64, written so that terms cancel only near the roots of derivatives
  double ulp;
  double absolute = 0;  // error near such a root
};
void PrintTo(const function& f, std::ostream* out) { *out << f.op->name; }

// formulas.glsl states 1.5 to 6 units. The driver's division and square root add less than one, since both are corrected once.
// The factor dy of derivatives is 1. Near the roots at -1.278 and -0.752, terms of about 1 cancel, each with an error of 2^-28.
const function functions[] = {
    {&info<op::exp>, [](double x) { return std::exp(x); }, 2},
    {&info<op::log>, [](double x) { return std::log(x); }, 2},
    {&info<op::sqrt>, [](double x) { return std::sqrt(x); }, 1},
    {&info<op::square>, [](double x) { return x * x; }, 0.5},
    {&info<op::tanh>, [](double x) { return std::tanh(x); }, 4},
    {&info<op::sigmoid>, logistic, 4},
    {&info<op::relu>, [](double x) { return x < 0 ? 0 : x; }, 0},
    {&info<op::silu>, [](double x) { return gated(x, logistic(x)); }, 4},
    {&info<op::gelu_tanh>, [](double x) { return gated(x, logistic(gelu_exponent(x))); }, 4},
    {&info<op::gelu_erf>, [](double x) { return gated(x, std::erfc(-x / std::sqrt(2.0)) / 2); }, 7},
    {&info<op::silu_grad>,
     [](double x) {
       const double v = within(x, 700);
       return logistic(v) * (1 + v * logistic(-v));
     },
     6, 0x1p-27},
    {&info<op::gelu_tanh_grad>,
     [](double x) {
       const double v = within(x, 20), u = gelu_exponent(v);
       return logistic(u) * (1 + v * logistic(-u) * 2 * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * v * v));
     },
     6, 0x1p-27},
    {&info<op::gelu_erf_grad>,
     [](double x) {
       const double v = within(x, 30);
       return std::erfc(-v / std::sqrt(2.0)) / 2 + v * std::exp(-v * v / 2) / std::sqrt(2 * M_PI);
     },
     6},
};

class element_functions : public testing::TestWithParam<function> {
 protected:
  static std::vector<float> values(const function& f, const std::vector<float>& x) {
    const bool derivative = f.op->name.ends_with("_grad");
    std::vector<stored> in{row(x)};
    if (derivative) in.push_back(row({1.0f}));
    const auto body = instruction(*f.op, derivative ? std::initializer_list<int>{0, 1} : std::initializer_list<int>{0}, dtype::f32, 0);
    return floats(run_body<emitted>(in, {row(x)}, {body})[0]);
  }
  static void check(const function& f, const std::vector<float>& x) { compare(f, x, values(f, x)); }
  static void compare(const function& f, const std::vector<float>& x, const std::vector<float>& y) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double truth = f.truth(double(x[i])), size = std::fabs(truth);
      if (std::isfinite(truth) && std::isfinite(y[i])) {
        // If subnormals are flushed, the error of operands and results is at most 2^-126.
        if (std::fabs(double(y[i]) - truth) <= std::max(f.absolute, size < 0x1p-125 || std::fabs(x[i]) < 0x1p-126f ? 0x1p-126 : 0))
          continue;
      }
      const double error = isotope_test::ulp_error(y[i], truth);
      ASSERT_TRUE(error <= f.ulp) << f.op->name << "(" << x[i] << ") = " << y[i] << ", off by " << error << " units in the last place";
    }
  }
};

TEST_P(element_functions, keep_their_stated_error_on_every_bf16) {
  std::vector<float> x;
  for (std::uint32_t i = 0; i < 0x10000; ++i) x.push_back(std::bit_cast<float>(i << 16));
  check(GetParam(), x);
}
TEST_P(element_functions, keep_their_stated_error_on_floats_of_all_magnitudes_and_about_one) {
  std::vector<float> x;
  for (std::uint64_t i = 0; i < 50'000; ++i) {
    const auto w = philox(1, i, 0, 0);
    x.push_back(std::bit_cast<float>(w[0]));
    x.push_back(16 * float(unit_interval(w[1])) - 8);
  }
  check(GetParam(), x);
}
TEST_P(element_functions, keep_their_stated_error_beside_the_roots_of_derivatives) {
  std::vector<float> x;
  for (const float root : {-0.7524614f, -0.7517915f, -1.2784645f})
    for (std::uint32_t i = 0; i < 2000; ++i) x.push_back(std::bit_cast<float>(std::bit_cast<std::uint32_t>(root) - 1000 + i));
  check(GetParam(), x);
}
TEST_P(element_functions, keep_their_stated_error_over_every_4099th_float_where_fma_rounds_once) {
  std::vector<float> x, y;
  const auto number = unsigned(vulkan::instruction_number(GetParam().op));
  const bool derivative = GetParam().op->name.ends_with("_grad");
  for (std::uint64_t p = 0; p < (std::uint64_t(1) << 32); p += 4099) {
    x.push_back(std::bit_cast<float>(std::uint32_t(p)));
    y.push_back(on_host::result_of(number, x.back(), derivative ? 1.0f : 0.0f, 0, 0));
  }
  compare(GetParam(), x, y);
}
INSTANTIATE_TEST_SUITE_P(formulas, element_functions, testing::ValuesIn(functions),
                         [](const auto& p) { return std::string(p.param.op->name); });

// The formulas that are only in generated bodies; op_test runs these on the device.
struct formula {
  const char* name;
  float (*of)(float);
  double (*truth)(double);
  double ulp;  // the error bound that the formula states
};
void PrintTo(const formula& f, std::ostream* out) { *out << f.name; }
const formula formulas[] = {
    {"erf", on_host::erf_accurate, [](double x) { return std::erf(x); }, 2},
    {"rsqrt", on_host::inverse_root, [](double x) { return 1 / std::sqrt(x); }, 2},
    {"sin", on_host::sin_accurate, [](double x) { return std::sin(x); }, 3},
    {"cos", on_host::cos_accurate, [](double x) { return std::cos(x); }, 3},
    {"square_by_pow", [](float x) { return on_host::pow_accurate(x, 2); }, [](double x) { return x * x; }, 3},
    {"fifth_root_by_pow", [](float x) { return on_host::pow_accurate(x, 0.2f); }, [](double x) { return std::pow(x, double(0.2f)); }, 3},
    {"power_of_two_by_pow", [](float x) { return on_host::pow_accurate(2, x); }, [](double x) { return std::exp2(x); }, 3},
};
class formulas_of_generated_bodies : public testing::TestWithParam<formula> {
 protected:
  static void check(float x) {
    const double truth = GetParam().truth(double(x));
    const float y = GetParam().of(x);
    const bool flushed = std::fabs(truth) < 0x1p-125 && std::fabs(double(y) - truth) <= 0x1p-126;  // results below 2^-126 may be zero
    ASSERT_TRUE(flushed || isotope_test::ulp_error(y, truth) <= GetParam().ulp)
        << GetParam().name << "(" << x << ") = " << y << ", not " << truth;
  }
};
TEST_P(formulas_of_generated_bodies, keep_their_stated_error_over_every_4099th_float) {
  for (std::uint64_t p = 0; p < (std::uint64_t(1) << 32); p += 4099) check(std::bit_cast<float>(std::uint32_t(p)));
}
TEST_P(formulas_of_generated_bodies, keep_their_stated_error_beside_multiples_of_a_right_angle) {
  for (int k = 1; k < 100'000; ++k)
    for (std::uint32_t i = 0; i < 3; ++i) check(std::bit_cast<float>(std::bit_cast<std::uint32_t>(float(k * M_PI_2)) + i - 1));
}
INSTANTIATE_TEST_SUITE_P(, formulas_of_generated_bodies, testing::ValuesIn(formulas),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(shorter_forms, are_the_exact_value_rounded_to_bf16_or_nearly) {
  std::vector<float> x;
  for (std::uint32_t i = 0; i < 0x10000; ++i) x.push_back(std::bit_cast<float>(i << 16));
  for (const function& f : functions) {
    if (f.op != &info<op::gelu_tanh> && f.op != &info<op::gelu_tanh_grad> && f.op != &info<op::gelu_erf>) continue;
    const bool derivative = f.op == &info<op::gelu_tanh_grad>;
    std::vector<stored> in{row(x)};
    if (derivative) in.push_back(row({1.0f}));
    const auto body = instruction(*f.op, derivative ? std::initializer_list<int>{0, 1} : std::initializer_list<int>{0}, dtype::bf16, 0);
    const auto y = floats(run_body<emitted>(in, {row(x)}, {body})[0]);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double truth = f.truth(double(x[i]));
      if (!std::isfinite(truth)) {
        EXPECT_TRUE(std::isnan(truth) ? std::isnan(y[i]) : double(y[i]) == truth) << f.op->name << "(" << x[i] << ") = " << y[i];
        continue;
      }
      // The rounding to bf16 gives 2^-8, and the shorter formulas 2^-14; results below 2^-126 may be flushed.
      const double bound = (0x1p-8 + 0x1p-14) * std::fabs(truth) + (derivative ? 0x1p-22 : 0) + 0x1p-126;
      ASSERT_LE(std::fabs(double(y[i]) - truth), bound) << f.op->name << "(" << x[i] << ") = " << y[i] << ", not " << truth;
    }
  }
}
TEST(quotients, are_within_two_units_over_all_magnitudes_and_right_at_zero_and_infinity) {
  std::vector<float> a{0, 1, infinity, 0, infinity, 1, -1, nan, 1, 3e38f, 3e38f, 1e-40f, -6, 7},
      b{0, 0, infinity, 5, 5, infinity, 0, 1, nan, 3e38f, 3e-38f, 1e-40f, 3, 7};
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const auto w = philox(2, i, 0, 0);
    a.push_back(std::bit_cast<float>(w[0]));
    b.push_back(std::bit_cast<float>(w[1]));
  }
  const auto y = floats(run_body<emitted>({row(a), row(b)}, {row(a)}, {instruction(info<op::div>, {0, 1}, dtype::f32, 0)})[0]);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double truth = double(a[i]) / double(b[i]);
    if (std::fabs(truth) < 0x1p-125 && std::fabs(double(y[i]) - truth) <= 0x1p-126) continue;  // may have been flushed
    ASSERT_TRUE(isotope_test::ulp_error(y[i], truth) <= 2) << a[i] << " / " << b[i] << " = " << y[i];
  }
  EXPECT_EQ(y[11], 1.0f) << "subnormal numbers divide by bits";
  EXPECT_EQ(y[12], -2.0f);
  EXPECT_EQ(y[13], 1.0f);
}

}  // namespace formulas_test
}  // namespace isotope::vulkan_test
