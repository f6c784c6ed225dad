// Functions that are made of other ops: their values where signs, NaN and infinities matter.
#include "gradient.hpp"

namespace isotope::op_test {
namespace composed_test {

using machine = eager<target<backend::cpu, precision::f32, kernels::portable>>;
constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

/// f of tensors with these numbers.
template <class F, class... X> std::vector<double> values(const F& f, const X&... x) {
  machine m;
  int k = 0;
  const auto given = [&](const std::vector<double>& numbers) {
    const std::string name = "x" + std::to_string(k++);
    const std::vector<float> stored(numbers.begin(), numbers.end());
    m.set(name, std::span<const float>(stored));
    return scope<machine>{&m, {}}.input(name, {std::int64_t(numbers.size())});
  };
  const std::vector<tensor<machine>> all{given(x)...};
  const auto y = [&]<std::size_t... I>(std::index_sequence<I...>) { return f(all[I]...); }(std::index_sequence_for<X...>{});
  EXPECT_TRUE(m.ok()) << std::string(m.g.error.view());
  return m.ok() ? m.read(y) : std::vector<double>{};
}
/// Whether the numbers are equal, signs of zeros and NaN among them.
bool same(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return std::isnan(x) ? std::isnan(y) : x == y && std::signbit(x) == std::signbit(y); });
}

TEST(abs_and_neg, are_exact_for_zeros_infinities_and_nan) {
  const std::vector<double> x{1.5, -2, 0.0, -0.0, infinity, -infinity, nan, 0x1p-149, -0x1p-149};
  EXPECT_TRUE(same(values([](auto v) { return abs(v); }, x), {1.5, 2, 0.0, 0.0, infinity, infinity, nan, 0x1p-149, 0x1p-149}));
  EXPECT_TRUE(same(values([](auto v) { return neg(v); }, x), {-1.5, 2, -0.0, 0.0, -infinity, infinity, nan, -0x1p-149, 0x1p-149}));
}
TEST(clamp, keeps_nan_and_what_lies_within_and_takes_infinite_bounds) {
  const std::vector<double> x{-infinity, -3, -1, -0.0, 0.5, 2, 3, infinity, nan};
  EXPECT_TRUE(same(values([](auto v) { return clamp(v, -1, 2); }, x), {-1, -1, -1, -0.0, 0.5, 2, 2, 2, nan}));
  EXPECT_TRUE(same(values([](auto v) { return clamp(v, 0, infinity); }, x), {0, 0, 0, -0.0, 0.5, 2, 3, infinity, nan}));
  EXPECT_TRUE(same(values([](auto v) { return clamp(v, -infinity, infinity); }, x), x));
  EXPECT_TRUE(same(values([](auto v) { return clamp(v, 2, 1); }, x), {1, 1, 1, 1, 1, 1, 1, 1, nan})) << "the upper bound wins";
}
TEST(logical_functions, have_their_truth_tables) {
  const std::vector<double> a{0, 0, 1, 1}, b{0, 1, 0, 1}, half{0.5};
  const auto on = [&](auto f) { return values([&](auto x, auto y, auto h) { return f(less(h, x), less(h, y)); }, a, b, half); };
  EXPECT_EQ(on([](auto x, auto y) { return logical_and(x, y); }), (std::vector<double>{0, 0, 0, 1}));
  EXPECT_EQ(on([](auto x, auto y) { return logical_or(x, y); }), (std::vector<double>{0, 1, 1, 1}));
  EXPECT_EQ(on([](auto x, auto y) { return logical_xor(x, y); }), (std::vector<double>{0, 1, 1, 0}));
  EXPECT_EQ(on([](auto x, auto) { return logical_not(x); }), (std::vector<double>{1, 1, 0, 0}));
}
TEST(powers_of_constants, are_those_of_tensors) {
  const std::vector<double> x{-2, -0.0, 0.5, 3, infinity, nan};
  EXPECT_TRUE(same(values([](auto v) { return pow(v, 1); }, x), x));
  EXPECT_TRUE(same(values([](auto v) { return pow(v, 2); }, x), {4, 0, 0.25, 9, infinity, nan}));
  EXPECT_TRUE(same(values([](auto v) { return pow(v, 3); }, x), {-8, -0.0, 0.125, 27, infinity, nan}));
  EXPECT_TRUE(same(values([](auto v) { return pow(v, 0); }, x), {1, 1, 1, 1, 1, 1}));
  EXPECT_TRUE(same(values([](auto v) { return pow(v, -1); }, x), {-0.5, -infinity, 2, double(1.0f / 3), 0, nan}));
}

}  // namespace composed_test
}  // namespace isotope::op_test
