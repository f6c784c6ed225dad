// labels: slow
#include "fourier.hpp"

namespace isotope::op_test {
namespace fft_sizes_test {

template <class C> class fft_sizes : public op_test<C> {
 public:
  using set = typename C::set;
};
TYPED_TEST_SUITE(fft_sizes, everywhere);

/// Whether results show the error of a kernel that no other type here runs too: in f32, and in f64.
template <class F> constexpr bool tells = fast_f32<F> || F::type == dtype::f64;

/// check(N, bins to compare at) for N up to 1024: every N and every bin where f32 shows, which is quick to compare; elsewhere some.
template <class F, class Check> void each_length(const Check& check) {
  for (std::int64_t N = 1; N <= 1024; N += fast_f32<F> ? 1 : 37) check(N, fast_f32<F> ? 1024 : 128);
}
TYPED_TEST(fft_sizes, complex_rows_of_every_length_to_1024_match_the_definition) {
  each_length<TestFixture>([](std::int64_t N, std::int64_t most) { expect_transforms<TestFixture>(N, 1, most); });
}
TYPED_TEST(fft_sizes, real_rows_of_every_length_to_1024_match_the_definition_there_and_back) {
  each_length<TestFixture>([](std::int64_t N, std::int64_t most) { expect_real_transforms<TestFixture>(N, 1, most); });
}
TYPED_TEST(fft_sizes, a_million_points_match_the_definition) {
  if (takes_every_pair<TestFixture>) GTEST_SKIP() << "a kernel that adds up N^2 products would take hours";
  if (!tells<TestFixture>) GTEST_SKIP() << "the kernel of another type here, or its results rounded more than it errs";
  expect_transforms<TestFixture>(1 << 20, 1);
  expect_real_transforms<TestFixture>(1 << 20, 1);
}
TYPED_TEST(fft_sizes, rows_of_several_passes_that_are_no_power_of_two_match_the_definition) {
  if (takes_every_pair<TestFixture>) GTEST_SKIP() << "a kernel that adds up N^2 products would take hours";
  bins lengths{5000};
  if (tells<TestFixture>) lengths.push_back(100000);
  for (const std::int64_t N : lengths) {
    expect_transforms<TestFixture>(N, 3);
    expect_real_transforms<TestFixture>(2 * N, 3);
  }
  expect_real_transforms<TestFixture>(3 * 6563, 2);
}

}  // namespace fft_sizes_test
}  // namespace isotope::op_test
