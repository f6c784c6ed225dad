// labels: slow
#include "fourier.hpp"

namespace isotope::op_test {
namespace fft_sizes_test {

class fft_sizes : public op_test {};
INSTANTIATE_TEST_SUITE_P(, fft_sizes, everywhere(), target_name);

/// Whether the target has its own kernel and its results show that kernel's error: in f32 and in f64.
bool tells(const op_test& here) { return fast_f32(here) || here.type == dtype::f64; }

/// Calls check(N, number of bins to compare) for N up to 1024: for every N and all bins if the target is such a one, otherwise for some.
template <class Check> void each_length(const op_test& here, const Check& check) {
  for (std::int64_t N = 1; N <= 1024; N += fast_f32(here) ? 1 : 37) check(N, fast_f32(here) ? 1024 : 128);
}
TEST_P(fft_sizes, complex_rows_of_every_length_to_1024_match_the_definition) {
  each_length(*this, [&](std::int64_t N, std::int64_t most) { expect_transforms(*this, N, 1, most); });
}
TEST_P(fft_sizes, real_rows_of_every_length_to_1024_match_the_definition_there_and_back) {
  each_length(*this, [&](std::int64_t N, std::int64_t most) { expect_real_transforms(*this, N, 1, most); });
}
TEST_P(fft_sizes, a_million_points_match_the_definition) {
  if (takes_every_pair(*this)) GTEST_SKIP() << "a kernel that sums N^2 products would take hours";
  if (!fast_f32(*this)) GTEST_SKIP() << "another target runs the same kernel, or is tested with 100,000 points";
  expect_transforms(*this, 1 << 20, 1);
  expect_real_transforms(*this, 1 << 20, 1);
}
TEST_P(fft_sizes, rows_of_several_passes_that_are_no_power_of_two_match_the_definition) {
  if (takes_every_pair(*this)) GTEST_SKIP() << "a kernel that sums N^2 products would take hours";
  bins lengths{5000};
  if (tells(*this)) lengths.push_back(100000);
  for (const std::int64_t N : lengths) {
    expect_transforms(*this, N, 3);
    expect_real_transforms(*this, 2 * N, 3);
  }
  expect_real_transforms(*this, 3 * 6563, 2);
}

}  // namespace fft_sizes_test
}  // namespace isotope::op_test
