#include "outcome.hpp"

#include <isotope/op/all.hpp>

#include <cmath>

using namespace plan_test;

namespace fourier_test {

/// Filters rows in the frequency domain. The number of points is even, half of it is not a power of two, and a row does not fit into a workgroup.
struct filter_loss {
  static constexpr int R = 1, N = 8200;
  template <isotope::Machine M> isotope::tensor<M> operator()(isotope::scope<M> s) const {
    using namespace isotope;
    const auto x = s.param("x", {R, N}, init::normal(1)), w = s.param("w", {N / 2 + 1, 1}, init::normal(1));
    const auto y = irfft(rfft(x) * w, N), spectrum = fft(reshape(y, {R, N / 2, 2}), fft_norm::ortho);
    return cast(mean(square(y)) + mean(spectrum * s.input("direction", {R, N / 2, 2})), accum_of(s.machine->program()));
  }
};

/// |a - b| / |b|
double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  double apart = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    apart += (double(a[i]) - double(b[i])) * (double(a[i]) - double(b[i]));
    norm += double(b[i]) * double(b[i]);
  }
  return std::sqrt(apart / norm);
}

template <class T> struct fourier_plan : testing::Test {};
TYPED_TEST_SUITE(fourier_plan, every_target, target_name);

// A gradient is the result of eight steps: three transforms, two products and a square, a sum, and the rounding of the reference to f32 when it
// is read. Each transform has an error of 4 u log2 N, the others of u; in bf16 each result, parameters and inputs included, is also rounded by
// 2^-8. Errors of different steps add up at most, and a sum of two gradients has at most twice the error of its terms.
TYPED_TEST(fourier_plan, of_a_filter_has_the_gradients_of_f64_and_the_same_bits_again) {
  using T = TypeParam;
  const auto wanted = step<reference_f64>(planned<reference_f64>(filter_loss{})), given = step<T>(planned<T>(filter_loss{}));
  const double u = 0x1p-24, stored = T::precision::type == isotope::dtype::bf16 ? 0x1p-8 : 0;
  const double error = 2 * (3 * 4 * u * std::log2(double(filter_loss::N)) + 5 * u + 10 * stored);
  for (const auto& [path, g] : wanted.gradients) EXPECT_TRUE(relative_error(given.gradients.at(path), g) <= error) << path;
  EXPECT_TRUE(std::fabs(given.loss / wanted.loss - 1) <= error) << given.loss << ", f64 " << wanted.loss;
  EXPECT_EQ(difference(step<T>(planned<T>(filter_loss{})), given), "");
}

}  // namespace fourier_test
