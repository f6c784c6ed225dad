// labels: subgroups
#include "fourier.hpp"

namespace isotope::op_test {
namespace fft_test {

class fft : public op_test {};
INSTANTIATE_TEST_SUITE_P(, fft, everywhere(), target_name);

/// Primes, powers of two, their neighbours, and lengths that need several passes over memory. For kernels that sum over all points the lengths are limited, so
/// that they take about a second.
bins lengths(const op_test& here) {
  bins all{97, 100, 128, 210, 251, 256, 257, 509, 512, 1000, 1021, 1023, 1024, 1025, 2048, 2049, 4095, 4096, 8192};
  if (takes_every_pair(here)) std::erase_if(all, [](std::int64_t N) { return N > 1025; });
  return all;
}

TEST_P(fft, of_every_length_to_64_matches_the_definition_in_both_directions) {
  for (std::int64_t N = 1; N <= 64; ++N) expect_transforms(*this, N, 3);
}
TEST_P(fft, of_primes_powers_and_their_neighbours_matches_the_definition) {
  for (const std::int64_t N : lengths(*this)) expect_transforms(*this, N, 2);
}
TEST_P(fft, of_real_rows_of_every_length_to_64_matches_the_definition_there_and_back) {
  for (std::int64_t N = 1; N <= 64; ++N) expect_real_transforms(*this, N, 3);
}
TEST_P(fft, of_longer_real_rows_matches_the_definition_there_and_back) {
  for (const std::int64_t N : lengths(*this)) expect_real_transforms(*this, N, 2);
}

TEST_P(fft, and_its_inverse_give_back_what_they_were_given) {
  const auto& here = *this;
  for (const std::int64_t N : {1, 2, 7, 16, 30, 64, 101, 1000}) {
    const double there = 1 / double(N), error = 2 * error_of(here, double(N));  // two transforms
    const host x = random({2, N, 2}, here.type, 1), real = random({3, N}, here.type, 2);
    const auto y = here.run<op::fft>({x}, complex_transform(-1));
    const auto again = here.run<op::fft>({y.at(0)}, complex_transform(1, there));
    const auto z = here.run<op::rfft>({real}, real_transform(N, 1, 1));
    const auto same_real = here.run<op::irfft>({z.at(0)}, real_transform(N, there, 2));
    EXPECT_TRUE(close(row_of_pairs(again.at(0), 1), row_of_pairs(x, 1), error)) << N;
    EXPECT_TRUE(close(row_of_numbers(same_real.at(0), 2), row_of_numbers(real, 2), error)) << N;
  }
}
TEST_P(fft, is_linear) {
  const auto& here = *this;
  for (const std::int64_t N : {5, 32, 60}) {
    const host a = random({1, N, 2}, here.type, 1), b = random({1, N, 2}, here.type, 2);
    host sum = a;
    for (std::size_t i = 0; i < sum.at.size(); ++i) sum.at[i] = rounded(here.type, a.at[i] - 2 * b.at[i]);
    const auto y = here.run<op::fft>({sum}, complex_transform(-1)), ya = here.run<op::fft>({a}, complex_transform(-1)),
               yb = here.run<op::fft>({b}, complex_transform(-1));
    auto expected = row_of_pairs(ya.at(0), 0);
    const auto other = row_of_pairs(yb.at(0), 0);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = {expected[i].re - 2 * other[i].re, expected[i].im - 2 * other[i].im};
    // the rounding of the sum, and errors of transforms with norms 1, 1 and 2 relative to a norm of sqrt(5)
    EXPECT_TRUE(close(row_of_pairs(y.at(0), 0), expected, 1.01 * roundoff(here.type) + 3 * error_of(here, double(N)))) << N;
  }
}
TEST_P(fft, keeps_the_norm) {
  const auto& here = *this;
  for (const std::int64_t N : {3, 64, 100, 1024}) {
    const host x = random({1, N, 2}, here.type, 3);
    const auto y = here.run<op::fft>({x}, complex_transform(-1, 1 / std::sqrt(double(N))));
    long double before = 0, after = 0;
    for (const long double v : x.at) before += v * v;
    for (const long double v : y.at(0).at) after += v * v;
    EXPECT_TRUE(std::fabs(double(after / before - 1)) <= 2.1 * error_of(here, double(N))) << N << ": " << double(after / before);
  }
}
long double inner_product(const host& a, const host& b) {
  long double sum = 0;
  for (std::size_t i = 0; i < a.at.size(); ++i) sum += static_cast<long double>(a.at[i]) * b.at[i];
  return sum;
}
// <A x, y> = <x, A^T y> over the reals, on which gradients depend. Both sides have the error of their transform, whose matrix has norm c sqrt(N).
TEST_P(fft, in_the_other_direction_is_the_transposed_matrix_as_rfft_and_irfft_are_with_the_same_factors) {
  const auto& here = *this;
  for (const std::int64_t N : {1, 2, 5, 6, 32, 45, 100}) {
    const auto expect_transposed = [&](const host& ax, const host& y, const host& x, const host& aty, double c) {
      const double size = std::sqrt(double(inner_product(x, x) * inner_product(y, y)) * double(N));
      const double apart = double(inner_product(ax, y) - inner_product(x, aty));
      EXPECT_TRUE(std::fabs(apart) <= 2 * c * error_of(here, double(N)) * size) << N << ": " << apart;
    };
    const host x = random({1, N, 2}, here.type, 1), y = random({1, N, 2}, here.type, 2), real = random({1, N}, here.type, 3),
               half = random({1, N / 2 + 1, 2}, here.type, 4);
    expect_transposed(here.run<op::fft>({x}, complex_transform(-1)).at(0), y, x, here.run<op::fft>({y}, complex_transform(1)).at(0), 1);
    for (const double c : {1.0, 2.0})
      expect_transposed(here.run<op::rfft>({real}, real_transform(N, 1, c)).at(0), half, real,
                        here.run<op::irfft>({half}, real_transform(N, 1, c)).at(0), c);
  }
}
TEST_P(fft, of_a_real_row_is_half_of_that_of_the_complex_row) {
  const auto& here = *this;
  for (const std::int64_t N : {1, 2, 9, 24, 128, 486}) {
    const host real = random({2, N}, here.type, 4);
    host whole = full({2, N, 2}, here.type, 0);
    for (std::int64_t i = 0; i < 2 * N; ++i) whole.at[std::size_t(2 * i)] = real[i];
    const auto half = here.run<op::rfft>({real}, real_transform(N, 1, 1)), all = here.run<op::fft>({whole}, complex_transform(-1));
    auto expected = row_of_pairs(all.at(0), 1);
    expected.resize(std::size_t(N / 2 + 1));
    // Both transforms have an error, and bins 0 to N/2 have at least half of the squared norm.
    EXPECT_TRUE(close(row_of_pairs(half.at(0), 1), expected, 2 * std::sqrt(2.0) * error_of(here, double(N)))) << N;
  }
}
TEST_P(fft, takes_any_axes_in_front_and_none) {
  const auto& here = *this;
  for (const std::int64_t N : {6, 8}) {
    const host x = random({3, 5, N, 2}, here.type, 1), flat({15, N, 2}, here.type, x.at),
               one({N, 2}, here.type, {x.at.begin(), x.at.begin() + 2 * N});
    const auto y = here.run<op::fft>({x}, complex_transform(-1)).at(0);
    EXPECT_TRUE(same(here.run<op::fft>({flat}, complex_transform(-1)).at(0), y.at));
    EXPECT_TRUE(same(here.run<op::fft>({one}, complex_transform(-1)).at(0), {y.at.begin(), y.at.begin() + 2 * N}));
    const host real = random({1, 300, N}, here.type, 2), rows({300, N}, here.type, real.at);
    EXPECT_TRUE(
        same(here.run<op::rfft>({real}, real_transform(N, 1, 1)).at(0), here.run<op::rfft>({rows}, real_transform(N, 1, 1)).at(0).at));
    EXPECT_TRUE(here.run<op::fft>({host({0, N, 2}, here.type, {})}, complex_transform(-1)).at(0).at.empty());
    EXPECT_TRUE(here.run<op::rfft>({host({2, 0, N}, here.type, {})}, real_transform(N, 1, 1)).at(0).at.empty());
    EXPECT_TRUE(here.run<op::irfft>({host({0, N / 2 + 1, 2}, here.type, {})}, real_transform(N, 1, 2)).at(0).at.empty());
  }
}
/// x times 2^e.
host scaled(host x, int e) {
  for (double& v : x.at) v = std::ldexp(v, e);
  return x;
}
// Rows of 1000 points of 2^114 give bins of 2^119. A convolution would have 2^11 times larger intermediates, and overflow, unless it scales them.
TEST_P(fft, of_a_power_of_two_times_x_is_so_many_times_that_of_x_bit_for_bit) {
  const auto& here = *this;
  for (const std::int64_t N : {8, 15, 999, 1000, 1024})
    for (const int e : {-30, 114}) {
      const host x = random({1, N, 2}, here.type, 5), real = random({1, N}, here.type, 6), half = random({1, N / 2 + 1, 2}, here.type, 7);
      const auto expect_scaled = [&]<class Op>(Op, const host& v, const attributes& a) {
        const auto y = here.run<Op>({v}, a), z = here.run<Op>({scaled(v, e)}, a);
        EXPECT_TRUE(same(z.at(0), scaled(y.at(0), e).at)) << Op::name << " of " << N << " points, 2^" << e;
      };
      expect_scaled(op::fft{}, x, complex_transform(-1));
      expect_scaled(op::rfft{}, real, real_transform(N, 1, 1));
      expect_scaled(op::irfft{}, half, real_transform(N, 1, 2));
    }
}
TEST_P(fft, of_zeros_is_zeros_and_of_a_first_one_is_ones) {
  const auto& here = *this;
  for (const std::int64_t N : {1, 2, 3, 16, 60, 1024}) {
    host x = full({1, N, 2}, here.type, 0);
    EXPECT_TRUE(close(row_of_pairs(here.run<op::fft>({x}, complex_transform(-1)).at(0), 0), row_of_pairs(x, 0), 0)) << N;
    x.at[0] = 1;
    const std::vector<complex> ones(static_cast<std::size_t>(N), complex{1, 0});
    EXPECT_TRUE(close(row_of_pairs(here.run<op::fft>({x}, complex_transform(-1)).at(0), 0), ones, error_of(here, double(N)))) << N;
  }
}
TEST_P(fft, of_a_nan_or_an_infinity_is_not_finite_in_any_bin_of_its_row_and_finite_in_the_other_rows) {
  const auto& here = *this;
  for (const std::int64_t N : {1, 2, 3, 8, 21, 64})
    for (const double bad : {nan, std::numeric_limits<double>::infinity()}) {
      host x = random({3, N, 2}, here.type, 1), real = random({3, N}, here.type, 2), half = random({3, N / 2 + 1, 2}, here.type, 3);
      x.at[std::size_t(2 * N)] = real.at[std::size_t(N)] = half.at[std::size_t(2 * (N / 2 + 1))] = bad;
      half.at[1] = bad;  // the imaginary part of bin 0
      const auto y = here.run<op::fft>({x}, complex_transform(-1)).at(0), z = here.run<op::rfft>({real}, real_transform(N, 1, 1)).at(0),
                 back = here.run<op::irfft>({half}, real_transform(N, 1, 2)).at(0);
      const auto lost = [](const complex& v) { return !std::isfinite(v.re) || !std::isfinite(v.im); };
      for (std::int64_t r = 0; r < 3; ++r) {
        for (const complex& v : row_of_pairs(y, r)) EXPECT_EQ(lost(v), r == 1) << N << ", " << bad;
        for (const complex& v : row_of_pairs(z, r)) EXPECT_EQ(lost(v), r == 1) << N << ", " << bad;
        for (const complex& v : row_of_numbers(back, r)) EXPECT_EQ(lost(v), r == 1) << N << ", " << bad;
      }
    }
}

TEST(fft_checks, catch_a_wrong_bin_and_a_nan) {
  const std::vector<complex> expected{{3, 0}, {0, 4}};  // norm 5
  EXPECT_TRUE(close(expected, expected, 0));
  EXPECT_TRUE(close({{3, 0}, {0, 4.05L}}, expected, 0.0101));
  EXPECT_FALSE(close({{3, 0}, {0, 4.05L}}, expected, 0.0099));
  EXPECT_FALSE(close({{3, 0}, {0, -4}}, expected, 0.1));
  EXPECT_FALSE(close({{3, 0}, {nan, 4}}, expected, 1));
  EXPECT_FALSE(close({{3, 0}}, expected, 1));
}
// A transform known in closed form: the second bin of 0, 1, 2 is w + 2 w^2 = -3/2 + i sqrt(3)/2.
TEST(fft_checks, know_a_transform_in_closed_form) {
  const std::vector<complex> x{{0, 0}, {1, 0}, {2, 0}}, y{{3, 0}, {-1.5L, std::sqrt(0.75L)}, {-1.5L, -std::sqrt(0.75L)}};
  EXPECT_TRUE(close(transformed<long double>(x, -1, {0, 1, 2}), y, 0x1p-60));
  EXPECT_TRUE(close(transformed<long double>(x, 1, {0, 2, 1}), y, 0x1p-60));
  EXPECT_TRUE(
      close(transformed<double>({{0, 0}, {0, 1}, {0, 2}}, -1, {0, 1, 2}), {{0, 3}, {-y[1].im, y[1].re}, {y[1].im, y[1].re}}, 0x1p-50));
}

using traced = tensor<tape>;
/// Applies f to an input and returns the first error of the trace, without its location.
template <class F> std::string error_of_trace(const shape& s, F f, dtype t = dtype::f32) {
  tape tp(dtype::f32);
  f(scope<tape>{&tp, {}}.input("x", s, t));
  const std::string text(tp.g.error.view());
  return text.substr(std::min(text.size(), text.find(' ') + 1));
}
TEST(fft_shapes, are_checked_and_errors_say_what_is_wrong) {
  const auto forward = [](traced x) { return isotope::fft(x); };
  EXPECT_EQ(error_of_trace({4, 3, 2}, forward), "");
  EXPECT_EQ(error_of_trace({4, 3}, forward), "fft: x must be [...,N,2]: complex numbers are pairs on the last axis: [4,3]");
  EXPECT_EQ(error_of_trace({2}, forward), "fft: x must be [...,N,2]: complex numbers are pairs on the last axis: [2]");
  EXPECT_EQ(error_of_trace({4, 0, 2}, forward), "fft: a transform needs at least one point: [4,0,2]");
  EXPECT_EQ(error_of_trace({4, scalar_dim{9, 0}, 2}, forward),
            "fft: the axis of a transform needs a size that is known when the program is planned: [4,<=9,2]");
  EXPECT_EQ(error_of_trace({3, 2}, forward, dtype::i32), "fft: needs a floating-point tensor; cast it first: [3,2]");
  EXPECT_EQ(error_of_trace({2, 2, 2, 2, 2, 2}, [](traced x) { return rfft(x); }),
            "rfft: has no room for the axis of complex pairs: [2,2,2,2,2,2]");
  EXPECT_EQ(error_of_trace({4, 0}, [](traced x) { return rfft(x); }), "rfft: a transform needs at least one point: [4,0]");
  EXPECT_EQ(error_of_trace({4, 5, 2}, [](traced x) { return irfft(x, 10); }), "irfft: 10 points have 6 bins: [4,5,2]");
  EXPECT_EQ(error_of_trace({4, 5, 2}, [](traced x) { return irfft(x, 0); }), "irfft: 0 points have 0 bins: [4,5,2]");
}
TEST(fft_shapes, follow_from_the_number_of_points) {
  tape t(dtype::f32);
  const traced x = scope<tape>{&t, {}}.input("x", {3, 9, 2}, dtype::f32), r = scope<tape>{&t, {}}.input("r", {3, 9}, dtype::f32);
  EXPECT_EQ(isotope::fft(x).dims(), shape({3, 9, 2}));
  EXPECT_EQ(rfft(r).dims(), shape({3, 5, 2}));
  EXPECT_EQ(irfft(x, 16).dims(), shape({3, 16}));
  EXPECT_EQ(irfft(x, 17).dims(), shape({3, 17}));
}
TEST(fft_norms, divide_as_numpy_does) {
  const auto factor = [](auto f) {
    tape t(dtype::f32);
    f(scope<tape>{&t, {}}.input("x", {3, 2}, dtype::f32));
    return op::rfft::constants::of(t.g.nodes.at(0).attr).factor;  // fft keeps its factor in the same entry
  };
  using enum fft_norm;
  EXPECT_EQ(factor([](traced x) { return isotope::fft(x); }), 1);
  EXPECT_EQ(factor([](traced x) { return ifft(x); }), 1.0 / 3);
  EXPECT_EQ(factor([](traced x) { return isotope::fft(x, forward); }), 1.0 / 3);
  EXPECT_EQ(factor([](traced x) { return ifft(x, forward); }), 1);
  EXPECT_EQ(factor([](traced x) { return isotope::fft(x, ortho); }), 1 / std::sqrt(3.0));
  EXPECT_EQ(factor([](traced x) { return ifft(x, ortho); }), 1 / std::sqrt(3.0));
  EXPECT_EQ(factor([](traced x) { return rfft(x, forward); }), 0.5);
  EXPECT_EQ(factor([](traced x) { return irfft(x, 5); }), 0.2);
  EXPECT_EQ(factor([](traced x) { return irfft(x, 4, ortho); }), 0.5);
}

}  // namespace fft_test
}  // namespace isotope::op_test
