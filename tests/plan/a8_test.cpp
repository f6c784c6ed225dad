// a8: activations of products with weights in blocks, rounded to 8 bits.
#include "outcome.hpp"

#include <isotope/op/all.hpp>
#include <isotope/plan/report/dispatches.hpp>

#include <cmath>
#include <limits>
#include <string>

using namespace plan_test;
namespace iso = isotope;

namespace a8_test {

using f32_targets = ::testing::Types<reference_f32, portable_f32, on<iso::precision::f32, iso::kernels::native>>;
template <class T> struct a8 : testing::Test {};
TYPED_TEST_SUITE(a8, f32_targets, target_name);

// N has a panel of 16 rows that is not full, K more blocks than are added before the others.
constexpr std::int64_t N = 37, K = 2144;
struct product {
  int rows = 1;
  template <iso::Machine M> iso::tensor<M> operator()(iso::scope<M> s) const {
    return matmul(s.input("x", {rows, K}, iso::dtype::f32), transpose(s.param("w", {N, K}, iso::init::normal(1))));
  }
};
template <class T> iso::result<iso::dynamic_plan> planned(int rows, iso::weight_storage how, bool rounded = true, bool pack = false) {
  return iso::plan_inference<T>(product{rows}, 0, true, false, how, nullptr, false, rounded, {}, pack);
}
template <class T> constexpr bool reads_blocks() {
  const auto k = iso::find_kernel(iso::kernel_table<T>, &iso::info<iso::op::matmul>, T::precision::type);
  return k >= 0 && iso::kernel_table<T>[std::size_t(k)].reads_blocks;
}
std::vector<float> activations(int rows) { return input_values<float>("x", rows * K); }
std::vector<float> weights() { return input_values<float>("w", N * K); }
/// The product of these activations and the weights.
template <class T> std::vector<float> run(int rows, iso::weight_storage how, const std::vector<float>& x, bool rounded, bool pack = false) {
  auto p = planned<T>(rows, how, rounded, pack);
  EXPECT_TRUE(p.ok()) << (p ? "" : p.error().line());
  auto s = loaded<T>(*std::move(p));
  EXPECT_TRUE(s.write(iso::tensor_kind::parameter, 0, weights()).ok());
  const auto in = s.template input<float>("x");
  EXPECT_TRUE(in.ok());
  std::copy_n(x.begin(), in->size(), in->begin());
  s.run({}, iso::phase_always);
  const auto y = s.template output<float>("output");
  EXPECT_TRUE(y.ok());
  return {y->begin(), y->end()};
}

std::vector<iso::quantized::values> stored_weights(iso::dtype type) {
  const auto w = weights();
  std::vector<iso::quantized::values> all;
  for (std::size_t i = 0; i < w.size(); i += 32) all.push_back(iso::quantized::quantize(type, w.data() + i));
  return all;
}
/// A row of the product by the definition, with rounding after each step.
std::vector<float> by_definition(const std::vector<iso::quantized::values>& w, const float* x) {
  std::vector<float> y;
  for (std::int64_t n = 0; n < N; ++n) {
    float total = 0, part = 0;
    for (std::int64_t k = 0; k < K; k += 32) {
      const auto a = iso::quantized::round_activations(x + k);
      const auto& b = w[std::size_t((n * K + k) / 32)];
      std::int32_t sum = 0;
      for (std::size_t j = 0; j < 32; ++j) sum += std::int32_t(a.code[j]) * b.code[j];
      part = std::fma(float(sum) * float(b.scale), a.scale, part);
      if (k / 32 % 64 == 63) total += part, part = 0;
    }
    y.push_back(total + part);
  }
  return y;
}

TYPED_TEST(a8, gives_the_bits_of_its_definition_for_any_number_of_rows) {
  if (!reads_blocks<TypeParam>()) GTEST_SKIP() << "this backend has no kernels that read weights in blocks";
  if (std::is_same_v<TypeParam, reference_f32>) GTEST_SKIP() << "reference kernels sum in f64";
  for (const auto how : {iso::weights::q8_0, iso::weights::q4_0}) {
    const auto w = stored_weights(how({}, {}));
    for (const int rows : {1, 3, 9}) {
      const auto x = activations(rows);
      std::vector<float> expected;
      const auto y = run<TypeParam>(rows, how, x, true);
      for (int m = 0; m < rows; ++m) {
        const auto row = by_definition(w, x.data() + m * K);
        expected.insert(expected.end(), row.begin(), row.end());
      }
      EXPECT_TRUE(same_bits(y, expected)) << rows;
      EXPECT_TRUE(same_bits(run<TypeParam>(rows, how, x, true, true), expected)) << rows << ", packed";
    }
  }
}

// Rounding moves an activation by d / 2 at most, and both products have errors of sums.
TYPED_TEST(a8, is_off_by_half_a_step_of_each_activation_at_most) {
  if (!reads_blocks<TypeParam>()) GTEST_SKIP() << "this backend has no kernels that read weights in blocks";
  for (const auto how : {iso::weights::q8_0, iso::weights::q4_0}) {
    const auto x = activations(2);
    const auto exact = run<TypeParam>(2, how, x, false), rounded = run<TypeParam>(2, how, x, true);
    const auto w = stored_weights(how({}, {}));
    EXPECT_FALSE(same_bits(exact, rounded));
    for (std::int64_t m = 0; m < 2; ++m)
      for (std::int64_t n = 0; n < N; ++n) {
        double most = 0;
        for (std::int64_t k = 0; k < K; ++k) {
          const float d = iso::quantized::round_activations(x.data() + m * K + k / 32 * 32).scale;
          const double b = std::fabs(double(w[std::size_t((n * K + k) / 32)][k % 32]));
          most += b * double(d) / 2 + 2 * 300 * 0x1p-24 * b * std::fabs(double(x[std::size_t(m * K + k)]));
        }
        const auto at = std::size_t(m * N + n);
        EXPECT_TRUE(std::fabs(double(exact[at]) - double(rounded[at])) <= most) << exact[at] << ' ' << rounded[at] << ' ' << most;
      }
  }
}

TYPED_TEST(a8, gives_nan_for_a_row_with_a_number_that_is_not_finite) {
  if (!reads_blocks<TypeParam>()) GTEST_SKIP() << "this backend has no kernels that read weights in blocks";
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    auto x = activations(3);
    x[K + 77] = bad;
    const auto y = run<TypeParam>(3, iso::weights::q8_0, x, true);
    for (std::int64_t i = 0; i < 3 * N; ++i) EXPECT_EQ(std::isnan(y[std::size_t(i)]), i / N == 1) << i;
  }
}

TYPED_TEST(a8, is_counted_in_reports_and_refused_without_weights_in_blocks) {
  const auto f32 = planned<TypeParam>(1, nullptr);
  ASSERT_FALSE(f32.ok());
  EXPECT_NE(f32.error().line().find("a8 rounds the activations of products with weights in q8_0 or q4_0, and there are none"),
            std::string::npos)
      << f32.error().line();
  if (!reads_blocks<TypeParam>()) GTEST_SKIP() << "this backend has no kernels that read weights in blocks";
  for (const bool rounded : {false, true}) {
    const auto p = planned<TypeParam>(1, iso::weights::q8_0, rounded);
    ASSERT_TRUE(p.ok());
    const auto rows = iso::planned_rows(*p, iso::kernel_table<TypeParam>, iso::phase_always);
    const auto text = iso::dispatch_report(*p, rows, TypeParam::kernel_set::name, "");
    EXPECT_EQ(text.find("\ta8 1\t") != std::string::npos, rounded) << text;
  }
}

TEST(a8_rounding, takes_the_nearest_code_halves_to_even_and_survives_tiny_numbers) {
  float x[32] = {127, -127, 0.5f, 1.5f, -2.5f, 3.49f, -0.0f};
  const auto r = iso::quantized::round_activations(x);
  EXPECT_EQ(r.scale, 1.0f);
  const int codes[] = {127, -127, 0, 2, -2, 3, 0};
  for (int j = 0; j < 7; ++j) EXPECT_EQ(r.code[j], codes[j]) << j;
  // The scale of 190 units of the least subnormal number is one unit: codes end at 127.
  constexpr float unit = std::numeric_limits<float>::denorm_min();
  const float tiny[32] = {190 * unit, -190 * unit, 3 * unit};
  const auto t = iso::quantized::round_activations(tiny);
  EXPECT_EQ(t.scale, unit);
  EXPECT_EQ(t.code[0], 127);
  EXPECT_EQ(t.code[1], -127);
  EXPECT_EQ(t.code[2], 3);
  static_assert(iso::quantized::round_activations(std::array<double, 32>{1, 2}.data()).code[1] == 127);
}

// A copy with unpacked codes has fewer elements of f32 than the weight.
TYPED_TEST(a8, passes_the_checks_of_traces_with_a_packed_copy) {
  if (!reads_blocks<TypeParam>()) GTEST_SKIP() << "this backend has no kernels that read weights in blocks";
  const auto t =
      iso::plan_detail::trace_inference<TypeParam>(product{9}, true, false, iso::weights::q8_0, nullptr, true, false, true, {}, true);
  EXPECT_EQ(std::string(t.error.view()), "");
}

struct half_product {
  int rows = 1;
  template <iso::Machine M> iso::tensor<M> operator()(iso::scope<M> s) const {
    return matmul(s.input("x", {rows, K}, iso::dtype::bf16), transpose(s.param("w", {N, K}, iso::init::normal(1))));
  }
};
using half_targets = ::testing::Types<portable_bf16, on<iso::precision::bf16, iso::kernels::native>>;
template <class T> struct a8_of_bf16 : testing::Test {};
TYPED_TEST_SUITE(a8_of_bf16, half_targets, target_name);
// Activations of bf16 are rounded as their numbers in f32, also with a packed copy of the weight; the sums are rounded to bf16.
TYPED_TEST(a8_of_bf16, gives_the_bits_of_its_definition_rounded_to_bf16) {
  if (!reads_blocks<TypeParam>()) GTEST_SKIP() << "this backend has no kernels that read weights in blocks";
  const auto w = stored_weights(iso::dtype::q8_0);
  for (const int rows : {1, 9})
    for (const bool pack : {false, true}) {
      auto p = iso::plan_inference<TypeParam>(half_product{rows}, 0, true, false, iso::weights::q8_0, nullptr, false, true, {}, pack);
      ASSERT_TRUE(p.ok()) << p.error().line();
      auto s = loaded<TypeParam>(*std::move(p));
      ASSERT_TRUE(s.write(iso::tensor_kind::parameter, 0, weights()).ok());
      const auto in = s.template input<iso::bfloat16>("x");
      ASSERT_TRUE(in.ok());
      const auto wide = activations(rows);
      std::vector<float> x, expected;
      for (std::size_t i = 0; i < in->size(); ++i) x.push_back(float((*in)[i] = iso::bfloat16(wide[i])));
      s.run({}, iso::phase_always);
      for (int m = 0; m < rows; ++m)
        for (const float y : by_definition(w, x.data() + m * K)) expected.push_back(float(iso::bfloat16(y)));
      const auto y = s.template output<iso::bfloat16>("output");
      ASSERT_TRUE(y.ok());
      EXPECT_TRUE(same_bits({y->begin(), y->end()}, expected)) << rows << ' ' << pack;
    }
}

}  // namespace a8_test
