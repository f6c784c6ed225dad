// Functions that are made of other ops: their values where signs, NaN and infinities matter.
#include "gradient.hpp"

#include <isotope/nn/nn.hpp>
#include <isotope/nn/scored_attention.hpp>

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

/// Numbers near those expected.
testing::AssertionResult near(const std::vector<double>& y, const std::vector<double>& expected) {
  if (y.size() != expected.size()) return testing::AssertionFailure() << y.size() << " numbers, " << expected.size() << " are expected";
  for (std::size_t i = 0; i < y.size(); ++i)
    if (!(std::fabs(y[i] - expected[i]) <= 4e-7 * (1 + std::fabs(expected[i]))) && y[i] != expected[i])
      return testing::AssertionFailure() << "number " << i << " is " << y[i] << ", expected " << expected[i];
  return testing::AssertionSuccess();
}
const std::vector<double> six{3, -1, 2, 0.5, -4, 1};
/// f of the six numbers as a matrix (2, 3).
template <class F> std::vector<double> of_matrix(const F& f) {
  return values([&](auto x) { return f(reshape(x, {2, 3})); }, six);
}
/// The whole numbers as i32.
auto ids_of(tensor<machine> x) { return cast(x, dtype::i32); }

TEST(logsumexp, is_finite_for_large_numbers_and_right_for_infinite_ones) {
  EXPECT_TRUE(near(of_matrix([](auto x) { return logsumexp(x, {1}); }),
                   {std::log(std::exp(3) + std::exp(-1) + std::exp(2)), std::log(std::exp(0.5) + std::exp(-4) + std::exp(1))}));
  const auto of = [](std::vector<double> x) { return values([](auto v) { return logsumexp(v); }, x).at(0); };
  EXPECT_EQ(of({1e30, 1e30, 0}), double(1e30F));
  EXPECT_EQ(of({-infinity, -infinity}), -infinity);
  EXPECT_EQ(of({-infinity, 2}), 2);
  EXPECT_EQ(of({infinity, 2}), infinity);
  EXPECT_TRUE(std::isnan(of({nan, 2})));
}
TEST(norm_and_variance, are_those_of_their_formulas) {
  EXPECT_TRUE(near(of_matrix([](auto x) { return norm(x, {1}, true); }), {std::sqrt(14.0), std::sqrt(17.25)}));
  EXPECT_TRUE(near(of_matrix([](auto x) { return var(x, {0}); }), {3.125, 4.5, 0.5}));
  EXPECT_TRUE(near(of_matrix([](auto x) { return var(x, {}, 0); }), {31.25 / 6 - 0.0625}));
  EXPECT_TRUE(near(of_matrix([](auto x) { return std_dev(x, {0}); }), {std::sqrt(3.125), std::sqrt(4.5), std::sqrt(0.5)}));
  EXPECT_TRUE(std::isnan(values([](auto v) { return var(v); }, std::vector<double>{7}).at(0))) << "one number has no unbiased variance";
}
TEST(any_and_all, tell_of_the_booleans_over_axes) {
  const auto above = [](double bound) { return [bound](auto x) { return less(fill(*x.machine, {}, dtype::f32, bound), x); }; };
  EXPECT_EQ(of_matrix([&](auto x) { return any(above(2)(x), {1}); }), (std::vector<double>{1, 0}));
  EXPECT_EQ(of_matrix([&](auto x) { return all(above(-2)(x), {1}); }), (std::vector<double>{1, 0}));
  const std::vector<double> none;
  EXPECT_EQ(values([&](auto x) { return any(above(0)(x)); }, none), (std::vector<double>{0}));
  EXPECT_EQ(values([&](auto x) { return all(above(0)(x)); }, none), (std::vector<double>{1}));
}
TEST(rearrangements, are_those_of_numpy) {
  const std::vector<double> three{1, 2, 3};
  EXPECT_EQ(values([](auto x) { return repeat(x, 2); }, three), (std::vector<double>{1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(values([](auto x) { return tile(x, 2); }, three), (std::vector<double>{1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(values([](auto x) { return roll(x, 1); }, three), (std::vector<double>{3, 1, 2}));
  EXPECT_EQ(values([](auto x) { return roll(x, -4); }, three), (std::vector<double>{2, 3, 1}));
  EXPECT_EQ(values([](auto x) { return flip(x); }, three), (std::vector<double>{3, 2, 1}));
  EXPECT_EQ(of_matrix([](auto x) { return flip(x, 0); }), (std::vector<double>{0.5, -4, 1, 3, -1, 2}));
  EXPECT_EQ(of_matrix([](auto x) { return repeat(x, 2, 0); }), (std::vector<double>{3, -1, 2, 3, -1, 2, 0.5, -4, 1, 0.5, -4, 1}));
  EXPECT_EQ(values([](auto a, auto b) { return stack({a, b}, -1); }, three, three), (std::vector<double>{1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(values([](auto a) { return stack({a, a, a, a, a, a, a, a, a, a}, 0); }, std::vector<double>{7}), std::vector<double>(10, 7));
  EXPECT_EQ(of_matrix([](auto x) { return parts(x, std::array<std::int64_t, 2>{1, 2})[1]; }), (std::vector<double>{-1, 2, -4, 1}));
  EXPECT_EQ(of_matrix([](auto x) { return tril(x); }), (std::vector<double>{3, 0, 0, 0.5, -4, 0}));
  EXPECT_EQ(of_matrix([](auto x) { return triu(x); }), (std::vector<double>{3, -1, 2, 0, -4, 1}));
  EXPECT_EQ(of_matrix([](auto x) { return tril(x, 1); }), (std::vector<double>{3, -1, 0, 0.5, -4, 1}));
  EXPECT_EQ(of_matrix([](auto x) { return triu(x, 1); }), (std::vector<double>{0, -1, 2, 0, 0, 1}));
  EXPECT_EQ(values([](auto x) { return one_hot(ids_of(x), 3); }, std::vector<double>{2, -1, 0}),
            (std::vector<double>{0, 0, 1, 0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(values([](auto x, auto i) { return index_select(reshape(x, {2, 3}), ids_of(i), 1); }, six, std::vector<double>{2, 0}),
            (std::vector<double>{2, 3, 1, 0.5}));
}
TEST(sort, is_stable_and_puts_nan_last) {
  const auto order = [](bool descending) { return [descending](auto x) { return cast(sort(x, -1, descending).second, dtype::f32); }; };
  const std::vector<double> x{2, nan, -infinity, 0.0, -0.0, 2, infinity};
  EXPECT_TRUE(same(values([](auto v) { return sort(v).first; }, x), {-infinity, 0.0, -0.0, 2, 2, infinity, nan}));
  EXPECT_EQ(values(order(false), x), (std::vector<double>{2, 3, 4, 0, 5, 6, 1}));
  EXPECT_TRUE(same(values([](auto v) { return sort(v, 0, true).first; }, x), {nan, infinity, 2, 2, 0.0, -0.0, -infinity}));
  EXPECT_EQ(values(order(true), x), (std::vector<double>{1, 6, 0, 5, 3, 4, 2}));
  EXPECT_EQ(of_matrix([](auto v) { return sort(v, 0).first; }), (std::vector<double>{0.5, -4, 1, 3, -1, 2}));
}
TEST(alibi, has_the_slopes_of_the_paper) {
  const auto bias = [](int heads) { return values([&](auto x) { return nn::alibi(*x.machine, heads, 1, 3); }, std::vector<double>{}); };
  EXPECT_TRUE(near(bias(2), {-0.125, -0.0625, 0, -0x1p-7, -0x1p-8, 0}));
  // Three heads: the two of two heads, then the first of four.
  EXPECT_TRUE(near(bias(3), {-0.125, -0.0625, 0, -0x1p-7, -0x1p-8, 0, -0.5, -0.25, 0}));
}
TEST(relative_bias, has_the_buckets_of_t5) {
  // Bucket i of eight holds the number i. huggingface/transformers, T5Attention._relative_position_bucket, num_buckets 8, max_distance 16.
  const std::vector<double> table{0, 1, 2, 3, 4, 5, 6, 7};
  const auto of = [&](std::int64_t S, std::int64_t T, bool causal) {
    return values([&](auto x) { return nn::relative_bias(reshape(x, {8, 1}), S, T, causal, 16); }, table);
  };
  EXPECT_EQ(of(1, 10, true), (std::vector<double>{6, 6, 5, 5, 4, 4, 3, 2, 1, 0}));
  EXPECT_EQ(of(3, 3, false), (std::vector<double>{0, 5, 6, 1, 0, 5, 2, 1, 0}));
}
TEST(losses, are_those_of_their_formulas) {
  const std::vector<double> x{0.5, 3, -1}, y{0, 1, 1};
  EXPECT_TRUE(near(values([](auto a, auto b) { return nn::mse(a, b); }, x, y), {8.25 / 3}));
  EXPECT_TRUE(near(values([](auto a, auto b) { return nn::huber(a, b, 1, nn::reduction::none); }, x, y), {0.125, 1.5, 1.5}));
  const auto logit = [](double a, double b) { return std::log1p(std::exp(a)) - a * b; };
  EXPECT_TRUE(near(values([](auto a, auto b) { return nn::binary_cross_entropy_with_logits(a, b, nn::reduction::sum); }, x, y),
                   {logit(0.5, 0) + logit(3, 1) + logit(-1, 1)}));
  EXPECT_TRUE(near(values([](auto p, auto b) { return nn::binary_cross_entropy(p, b, nn::reduction::none); },
                          std::vector<double>{0.25, 0, 0}, std::vector<double>{1, 0, 1}),
                   {-std::log(0.25), 0, 100}));
  EXPECT_TRUE(near(values([](auto p, auto q) { return nn::kl_divergence(log(p), q, nn::reduction::none); }, std::vector<double>{0.25, 0.5},
                          std::vector<double>{0.5, 0}),
                   {0.5 * std::log(2.0), 0}));
}
/// Cross-entropy of two rows of three classes and a row that does not count, by its definition.
TEST(class_loss, weighs_and_smooths_as_torch_does_and_leaves_rows_out) {
  const std::vector<double> logits{3, -1, 2, 0.5, -4, 1, 9, 9, 9}, targets{2, 0, -1}, weights{1, 2, 4};
  const auto log_p = [&](int row, int c) {
    double total = 0;
    for (int k = 0; k < 3; ++k) total += std::exp(logits[std::size_t(3 * row + k)]);
    return logits[std::size_t(3 * row + c)] - std::log(total);
  };
  const auto loss = [&](nn::class_loss_options o, bool weighted) {
    return values([&](auto x, auto t, auto w) { return nn::class_loss(reshape(x, {3, 3}), ids_of(t), o, weighted ? w : decltype(w){}); },
                  logits, targets, weights);
  };
  EXPECT_TRUE(near(loss({}, false), {-(log_p(0, 2) + log_p(1, 0)) / 2}));
  EXPECT_TRUE(near(loss({.how = nn::reduction::none}, true), {-4 * log_p(0, 2), -log_p(1, 0), 0}));
  EXPECT_TRUE(near(loss({}, true), {-(4 * log_p(0, 2) + log_p(1, 0)) / 5}));
  const auto spread = [&](int row) { return log_p(row, 0) + 2 * log_p(row, 1) + 4 * log_p(row, 2); };
  EXPECT_TRUE(near(loss({.smoothing = 0.3}, true), {-0.7 * (4 * log_p(0, 2) + log_p(1, 0)) / 5 - 0.3 / 3 * (spread(0) + spread(1)) / 5}));
  const auto z = [&](int row) { return std::pow(logits[std::size_t(3 * row)] - log_p(row, 0), 2); };
  EXPECT_TRUE(near(loss({.how = nn::reduction::sum, .z = 0.1}, false), {-log_p(0, 2) - log_p(1, 0) + 0.1 * (z(0) + z(1))}));
  EXPECT_EQ(values([](auto x, auto t) { return nn::class_loss(reshape(x, {1, 3}), ids_of(t)); }, std::vector<double>{1, 2, 3},
                   std::vector<double>{3}),
            (std::vector<double>{0}));
}
TEST(class_loss, does_not_depend_on_a_common_addend) {
  const auto gradients = [](double addend) {
    std::vector<double> dx;
    machine m;
    std::vector<float> x{3, -1, 2, 0.5F, -4, 1};
    for (float& v : x) v += float(addend);
    m.set("x", std::span<const float>(x));
    const std::vector<std::int32_t> t{2, 0};
    m.set("t", std::span<const std::int32_t>(t));
    const scope<machine> s{&m, {}};
    const auto logits = s.param("x", {2, 3});
    const auto loss = nn::class_loss(logits, s.input("t", {2}, dtype::i32), {.smoothing = 0.1});
    differentiate(m, loss.id);
    EXPECT_TRUE(m.ok()) << std::string(m.g.error.view());
    return m.ok() ? m.read(m.g.params[0].grad) : dx;
  };
  const auto a = gradients(0), b = gradients(65536);  // the sums are exact in f32
  double error = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) error += (a[i] - b[i]) * (a[i] - b[i]), size += a[i] * a[i];
  EXPECT_LE(error, 1e-12 * size);
  EXPECT_GT(size, 0.01);
}

}  // namespace composed_test
}  // namespace isotope::op_test
