#include "harness.hpp"

namespace isotope::op_test {
namespace elementwise_test {

class elementwise : public op_test {
 public:
  /// Fast kernels may have errors of a few units in the last place; reference kernels are correctly rounded up to the rounding of f64 itself. In f64
  /// the formulas cancel near their roots, which gives an absolute error of 2^-50.
  auto error(const std::vector<double>& expected) const {
    return [this, &expected](std::size_t i) {
      const double ulps = type == dtype::f64 ? 32 : exact ? 0.5 : 8;
      const double size = std::isfinite(expected[i]) ? std::fabs(expected[i]) : 0;
      return ulps * size * 2 * roundoff(accum) + (type == dtype::f64 ? 0x1p-50 : 4 * least(accum));
    };
  }
  host values() const {  // every bf16: exact in each format
    std::vector<double> x;
    for (std::uint64_t i = 0; i < 0x10000; ++i) x.push_back(decode(dtype::bf16, reinterpret_cast<const std::byte*>(&i)));
    return {{std::int64_t(x.size())}, type, std::move(x)};
  }
  template <class Op, class F> void check(F f, double k = 0) const {
    const host x = values();
    const auto y = run<Op>({x}, attributes::of_scalar(k));
    std::vector<double> expected;
    for (double v : x.at) expected.push_back(double(f(static_cast<long double>(v))));
    ASSERT_EQ(y.size(), 1u);
    EXPECT_TRUE(near(y[0], expected, error(expected))) << info<Op>.name;
  }
  /// Tests f on all pairs of awkward numbers. `range` is applied to the first of each pair, for ops whose operand is the result of another op. `cancels` is the
  /// number of roundings, relative to the second operand, that remain if the first one's terms cancel.
  template <class Op, class F, class Range = double (*)(double)>
  void check_pairs(F f, Range range = [](double x) { return x; }, double cancels = 0) const {
    const double smallest = flushed_below > 0 ? 3e-38 : 1e-40;  // numbers that a device may flush to zero do not test arithmetic
    std::vector<double> some = {0.0,
                                -0.0,
                                1,
                                -1,
                                infinity,
                                -infinity,
                                nan,
                                rounded(type, smallest),
                                rounded(type, -smallest),
                                rounded(type, 3e38),
                                rounded(type, 3e-38)};
    for (double v : random({50}, type, 7, -6, 6).at) some.push_back(v);
    const auto n = std::int64_t(some.size());
    std::vector<double> first;
    for (double v : some) first.push_back(rounded(type, range(v)));
    const host a({n, 1}, type, first), b({n}, type, some);
    const auto y = run<Op>({a, b});
    std::vector<double> expected;
    for (double u : first)
      for (double v : some) expected.push_back(double(f(static_cast<long double>(u), static_cast<long double>(v))));
    ASSERT_EQ(y.size(), 1u);
    const auto relative = error(expected);
    const auto bound = [&](std::size_t e) {
      const double second = some[e % some.size()];
      return relative(e) + (std::isfinite(second) ? cancels * roundoff(accum) * std::fabs(second) : 0);
    };
    EXPECT_TRUE(near(y[0], expected, bound)) << info<Op>.name;
  }
};
INSTANTIATE_TEST_SUITE_P(, elementwise, everywhere(), target_name);

using real = long double;
constexpr real root2pi = 0.797884560802865355879892119868763737L, root2 = 1.414213562373095048801688724209698079L;
real logistic(real x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
real gated(real x, real gate) { return gate == 0 && !std::isnan(x) ? 0 : x * gate; }  // the limit at -infinity

TEST_P(elementwise, exp_log_sqrt_square_match_the_formula_on_every_bf16) {
  check<op::exp>([](real x) { return std::exp(x); });
  check<op::log>([](real x) { return std::log(x); });
  check<op::sqrt>([](real x) { return std::sqrt(x); });
  check<op::square>([](real x) { return x * x; });
}
TEST_P(elementwise, relu_tanh_sigmoid_silu_match_the_formula_on_every_bf16) {
  check<op::relu>([](real x) { return std::isnan(x) ? x : x > 0 ? x : 0; });
  check<op::tanh>([](real x) { return std::tanh(x); });
  check<op::sigmoid>([](real x) { return logistic(x); });
  check<op::silu>([](real x) { return gated(x, logistic(x)); });
}
TEST_P(elementwise, both_forms_of_gelu_match_the_formula_on_every_bf16) {
  check<op::gelu_tanh>([](real x) { return gated(x, logistic(2 * root2pi * (x + 0.044715L * x * x * x))); });
  check<op::gelu_erf>([](real x) { return gated(x, std::erfc(-x / root2) / 2); });
}
TEST_P(elementwise, erf_rsqrt_sine_and_cosine_match_the_formula_on_every_bf16) {
  check<op::erf>([](real x) { return std::erf(x); });
  check<op::rsqrt>([](real x) { return 1 / std::sqrt(x); });
  check<op::sin>([](real x) { return std::sin(x); });  // also far beyond the numbers that pi of f64 can reduce
  check<op::cos>([](real x) { return std::cos(x); });
}
TEST_P(elementwise, sign_and_floor_are_exact_on_every_bf16) {
  check<op::sign>([](real x) { return x > 0 ? 1 : x < 0 ? -1 : x; });
  check<op::floor>([](real x) { return std::floor(x); });
}
TEST_P(elementwise, scale_and_shift_round_their_constant_first) {
  const real k = real(rounded(accum, 0.1));
  check<op::scale>([=](real x) { return k * x; }, 0.1);
  check<op::shift>([=](real x) { return x + k; }, 0.1);
}
TEST_P(elementwise, arithmetic_matches_on_pairs_of_awkward_numbers) {
  check_pairs<op::add>([](real a, real b) { return a + b; });
  check_pairs<op::sub>([](real a, real b) { return a - b; });
  check_pairs<op::mul>([](real a, real b) { return a * b; });
  check_pairs<op::div>([](real a, real b) { return a / b; });
}
TEST_P(elementwise, maximum_and_minimum_keep_nan_and_order_zeros) {
  const auto below = [](real a, real b) { return a < b || (a == b && std::signbit(a)); };
  check_pairs<op::maximum>([=](real a, real b) { return std::isnan(a) || std::isnan(b) ? real(nan) : below(a, b) ? b : a; });
  check_pairs<op::minimum>([=](real a, real b) { return std::isnan(a) || std::isnan(b) ? real(nan) : below(a, b) ? a : b; });
}
TEST_P(elementwise, powers_match_on_pairs_and_at_zero_one_and_infinity) {
  check_pairs<op::pow>([](real a, real b) { return std::pow(a, b); });
}
TEST_P(elementwise, comparisons_are_false_on_nan) {
  check_pairs<op::less>([](real a, real b) { return a < b ? 1 : 0; });
  check_pairs<op::equal>([](real a, real b) { return a == b ? 1 : 0; });
}
TEST_P(elementwise, backward_formulas_match_on_pairs) {
  check_pairs<op::relu_grad>([](real x, real dy) { return x > 0 ? dy : 0; });
  check_pairs<op::tanh_grad>([](real y, real dy) { return dy * (1 - y * y); }, [](double x) { return std::tanh(x); }, 2);
  check_pairs<op::sigmoid_grad>([](real y, real dy) { return dy * y * (1 - y); }, [](double x) { return double(logistic(real(x))); });
  check_pairs<op::sqrt_grad>([](real y, real dy) { return dy / (2 * y); }, [](double x) { return std::sqrt(x); });
}
TEST_P(elementwise, backward_gates_match_on_pairs_and_have_their_limits) {
  check_pairs<op::silu_grad>([](real x, real dy) {
    const real s = logistic(x);
    return dy * (std::isinf(x) ? s : s * (1 + x * (1 - s)));
  });
  check_pairs<op::gelu_tanh_grad>([](real x, real dy) {
    const real u = root2pi * (x + 0.044715L * x * x * x);
    const real slope = 2 * logistic(2 * u) * logistic(-2 * u) * root2pi * (1 + 3 * 0.044715L * x * x);
    return dy * (logistic(2 * u) + (std::fabs(x) > 1000 ? 0 : x * slope));
  });
  check_pairs<op::gelu_erf_grad>([](real x, real dy) {
    return dy * (std::erfc(-x / root2) / 2 + (std::fabs(x) > 1000 ? 0 : x * std::exp(-x * x / 2) * root2pi / 2));
  });
}
TEST_P(elementwise, select_takes_all_three_operands_broadcast_in_the_middle) {
  const dtype t = type;
  const host c({3, 1, 2}, dtype::boolean, {1, 0, 0, 1, 1, 1}), a = random({3, 5, 1}, t, 1), b = random({5, 2}, t, 2);
  const auto y = run<op::select>({c, a, b});
  std::vector<double> expected;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 5; ++j)
      for (int k = 0; k < 2; ++k) expected.push_back(c[i * 2 + k] != 0 ? a[i * 5 + j] : b[j * 2 + k]);
  EXPECT_TRUE(same(y.at(0), expected));
}
TEST_P(elementwise, gradient_of_a_divisor_is_rounded_once_and_zero_where_a_factor_is) {
  const dtype t = type;
  const host a = random({7, 1, 30}, t, 1), b = random({5, 1}, t, 2, 0.5, 3), dy = random({7, 5, 30}, t, 3);
  std::vector<double> expected;
  for (int i = 0; i < 7; ++i)
    for (int j = 0; j < 5; ++j)
      for (int k = 0; k < 30; ++k) expected.push_back(-dy[(i * 5 + j) * 30 + k] * a[i * 30 + k] / (b[j] * b[j]));
  EXPECT_TRUE(near(run<op::div_grad>({a, b, dy}).at(0), expected, error(expected)));
  // b b and a / b / b are outside the range of f32, but the result is not
  const host big({4}, t, {0, 0x1p100, 0x1p-100, 1}), divisor({4}, t, {0x1p-100, 0x1p100, 0x1p-100, 2}), one({4}, t, {1, 0x1p100, 0, 0});
  EXPECT_TRUE(same(run<op::div_grad>({big, divisor, one}).at(0), {-0.0, -1, -0.0, -0.0}));
}
TEST_P(elementwise, operands_of_any_memory_order_and_size_are_read_in_place) {
  const dtype t = type;
  for (std::int64_t n : {0, 1, 7, 64, 65, 257}) {
    const host a = laid_out(random({n, 3}, t, 1), {1, 0}), b = laid_out(random({n, 3}, t, 2), {0, 1}, 5);
    const auto y = run<op::add>({a, b});
    std::vector<double> expected;
    for (std::int64_t i = 0; i < 3 * n; ++i) expected.push_back(rounded(t, a[i] + b[i]));
    EXPECT_TRUE(same(y.at(0), expected));
  }
}
TEST_P(elementwise, a_fused_body_gives_the_bits_of_its_instructions_run_one_by_one) {
  const auto& here = *this;
  const dtype t = here.type;
  const host x = random({13, 19}, t, 1), b = random({19}, t, 2), s = random({13, 1}, t, 3);
  settings fused;
  fused.body = {here.step<op::add>({0, 1}, t), here.step<op::gelu_tanh>({8}, t, 1), here.step<op::mul>({9, 2}, t, 0),
                here.step<op::scale>({10}, t, 2, 0.3)};
  fused.body_outputs = {t, t, t};
  const auto y = here.run<op::elementwise>({x, b, s}, {}, fused);
  const op::scale::constants k{.k = 0.3};
  const auto sum = here.run<op::add>({x, b}), gate = here.run<op::gelu_tanh>({sum[0]}), scaled = here.run<op::mul>({gate[0], s}),
             last = here.run<op::scale>({scaled[0]}, k);
  ASSERT_EQ(y.size(), 3u);
  EXPECT_TRUE(same(y[0], scaled[0].at));
  EXPECT_TRUE(same(y[1], gate[0].at));
  EXPECT_TRUE(same(y[2], last[0].at));
}

TEST(near_itself, rejects_a_wrong_number_a_nan_and_a_missing_element) {
  const host y({3}, dtype::f32, {1, 2, 3});
  EXPECT_TRUE(near(y, {1, 2, 3}, 0.0));
  EXPECT_FALSE(near(y, {1, 2, 3.001}, 1e-4));
  EXPECT_FALSE(near(y, {1, nan, 3}, 1e9));
  EXPECT_FALSE(near(y, {1, infinity, 3}, 1e9));
  EXPECT_FALSE(near(y, {1, 2}, 1e9));
}
TEST(memory_itself, notices_a_write_outside) {
  memory m(12);
  EXPECT_TRUE(m.guarded());
  m.data()[12] = std::byte{0};
  EXPECT_FALSE(m.guarded());
}

}  // namespace elementwise_test
}  // namespace isotope::op_test
