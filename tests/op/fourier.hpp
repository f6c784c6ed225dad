#pragma once
/// Fourier transforms by definition at chosen bins, in f64 or wider, with which kernels are compared.
#include "harness.hpp"

#include <isotope/plan/kernels.hpp>

namespace isotope::op_test {

struct complex {
  long double re = 0, im = 0;
};
using bins = std::vector<std::int64_t>;

/// e^(-2 pi i t / N) for t < N. Angles are reduced to an eighth of a turn, so that each value has a single rounding. Valid until the next call.
template <class Real> const std::vector<std::array<Real, 2>>& turns(std::int64_t N) {
  static std::vector<std::array<Real, 2>> w;
  if (std::int64_t(w.size()) == N) return w;
  w.assign(static_cast<std::size_t>(N), {});
  for (std::int64_t t = 0; t < N; ++t) {
    const std::int64_t eighth = 8 * t / N, rest = 8 * t - eighth * N;
    const bool back = eighth % 2 == 1;  // counted from the end of the quarter
    const long double angle =
        0.785398163397448309615660845819875721L * static_cast<long double>(back ? N - rest : rest) / static_cast<long double>(N);
    complex z{std::cos(angle), std::sin(angle)};
    if (back) z = {z.im, z.re};
    for (std::int64_t q = 0; q < eighth / 2; ++q) z = {-z.im, z.re};
    w[std::size_t(t)] = {Real(z.re), Real(-z.im)};
  }
  return w;
}
/// sum_n x[n] e^(direction 2 pi i n k / N) for the given k. In double its error is about 2^-53 sqrt(N) of the norm, which is negligible against f32; f64
/// results are compared with long double.
template <class Real> std::vector<complex> transformed(const std::vector<complex>& x, int direction, const bins& asked) {
  const auto N = std::int64_t(x.size());
  const auto& w = turns<Real>(N);
  std::vector<Real> re, im;  // an inverse is the conjugate of the transform of conjugates
  for (const complex& z : x) {
    re.push_back(Real(z.re));
    im.push_back(Real(direction < 0 ? z.im : -z.im));
  }
  std::vector<complex> y;
  for (const std::int64_t k : asked) {
    Real a = 0, b = 0;
    std::size_t t = 0;
    const auto n = std::size_t(N), step = std::size_t(k);
    for (std::size_t i = 0; i < n; ++i) {
      const auto [c, s] = w[t];
      a += re[i] * c - im[i] * s;
      b += re[i] * s + im[i] * c;
      t += step;
      if (t >= n) t -= n;
    }
    y.push_back({a, direction < 0 ? b : -b});
  }
  return y;
}

/// Row r of a tensor of pairs, or of real numbers.
inline std::vector<complex> row_of_pairs(const host& x, std::int64_t r) {
  const std::int64_t N = x.dims[-2];
  std::vector<complex> z;
  for (std::int64_t n = 0; n < N; ++n) z.push_back({x[2 * (r * N + n)], x[2 * (r * N + n) + 1]});
  return z;
}
inline std::vector<complex> row_of_numbers(const host& x, std::int64_t r) {
  const std::int64_t N = x.dims[-1];
  std::vector<complex> z;
  for (std::int64_t n = 0; n < N; ++n) z.push_back({x[r * N + n], 0});
  return z;
}
/// Expands row r of bins 0 to N/2 to all N bins: half of each inner bin stays and half goes to the mirrored bin; the imaginary parts of the outer bins are
/// dropped.
inline std::vector<complex> row_of_bins(const host& x, std::int64_t r, std::int64_t N) {
  const auto half = row_of_pairs(x, r);
  std::vector<complex> z(static_cast<std::size_t>(N));
  for (std::int64_t k = 0; k <= N / 2; ++k) {
    const complex& b = half[std::size_t(k)];
    if (k == 0 || 2 * k == N) z[std::size_t(k)] = {b.re, 0};
    else {
      z[std::size_t(k)] = {b.re / 2, b.im / 2};
      z[std::size_t(N - k)] = {b.re / 2, -b.im / 2};
    }
  }
  return z;
}

/// The bins 0 to n - 1; if there are more than `most`, the ends, the middle and 20 others.
inline bins some_of(std::int64_t n, std::int64_t most = 128) {
  bins k;
  if (n <= most) {
    for (std::int64_t i = 0; i < n; ++i) k.push_back(i);
    return k;
  }
  k = {0, 1, n / 2 - 1, n / 2, n / 2 + 1, n - 1};
  for (std::uint64_t i = 0; i < 20; ++i) k.push_back(std::int64_t(philox(std::uint64_t(n), i, 0, 0)[0] % std::uint64_t(n)));
  return k;
}

/// The first and the last of n bins.
inline bins ends(std::int64_t n) { return n == 1 ? bins{0} : bins{0, n - 1}; }

/// Whether the norm of the difference is at most `error` times the norm of the expected numbers, sqrt(sum |z|^2).
inline ::testing::AssertionResult close(const std::vector<complex>& given, const std::vector<complex>& expected, double error) {
  long double apart = 0, norm = 0;
  if (given.size() != expected.size()) return ::testing::AssertionFailure() << given.size() << " numbers, expected " << expected.size();
  for (std::size_t i = 0; i < given.size(); ++i) {
    const complex &a = given[i], &e = expected[i];
    apart += (a.re - e.re) * (a.re - e.re) + (a.im - e.im) * (a.im - e.im);
    norm += e.re * e.re + e.im * e.im;
  }
  if (!(std::sqrt(apart) <= error * std::sqrt(norm)))
    return ::testing::AssertionFailure() << "relative error " << double(std::sqrt(apart / norm)) << ", at most " << error;
  return ::testing::AssertionSuccess();
}
inline std::vector<complex> at_bins(const std::vector<complex>& row, const bins& asked) {
  std::vector<complex> y;
  for (const std::int64_t k : asked) y.push_back(row[std::size_t(k)]);
  return y;
}

/// Whether the kernel sums over all points for every bin, as reference kernels do, which is slow on software drivers.
inline bool takes_every_pair(const op_test& here) { return !here.exact && here.kernel<op::fft>().set == kernels::reference::name; }
/// Whether the kernel is a fast one in f32 that the target does not share with a lower set. Its results show the error of its arithmetic.
inline bool fast_f32(const op_test& here) {
  return !here.exact && !takes_every_pair(here) && here.type == dtype::f32 && here.kernel<op::fft>().set == here.set;
}

/// The bound on the relative error of a transform of N points: 4 u log2 N, where u is the roundoff of the kernel's arithmetic, plus the rounding of results
/// to their storage format.
///
/// A pass of radix 2 adds the roundings of a factor, a product and a sum, each at most u sqrt(2) of the row's norm: 4.2 u if all had the same sign. Since
/// they do not, and passes have a higher radix, the error is less than half of the bound. A transform by convolution takes three transforms of up to 4 N
/// points, each with that smaller error.
double error_of(const op_test& here, double N) {
  const double arithmetic = here.exact ? 0x1p-53 : 0x1p-24;
  return 4 * arithmetic * std::log2(N) + (roundoff(here.type) > arithmetic ? 1.01 * roundoff(here.type) : 0);
}

inline attributes complex_transform(int direction, double factor = 1) {
  return op::fft::constants{.direction = direction, .factor = factor};
}
inline attributes real_transform(std::int64_t N, double factor, double inner) {
  return op::rfft::constants{.points = N, .factor = factor, .inner = inner};
}

/// Calls transformed() in a wider format than that of the kernel's arithmetic.
inline std::vector<complex> compared(const op_test& here, const std::vector<complex>& row, int direction, const bins& asked) {
  return here.type == dtype::f64 ? transformed<long double>(row, direction, asked) : transformed<double>(row, direction, asked);
}

/// Tests complex rows of N points in both directions: all bins if there are at most `most`, otherwise some.
void expect_transforms(const op_test& here, std::int64_t N, std::int64_t rows, std::int64_t most = 128) {
  const host x = random({rows, N, 2}, here.type, std::uint64_t(N));
  const bins k = some_of(N, most);
  for (const int direction : {-1, 1}) {
    const double factor = direction < 0 ? 1 : 1 / double(N);
    const auto y = here.run<op::fft>({x}, complex_transform(direction, factor));
    for (const std::int64_t r : ends(rows)) {
      auto expected = compared(here, row_of_pairs(x, r), direction, k);
      for (complex& z : expected) z = {factor * z.re, factor * z.im};
      EXPECT_TRUE(close(at_bins(row_of_pairs(y.at(0), r), k), expected, error_of(here, double(N))))
          << N << " points, direction " << direction;
    }
  }
}
/// Tests rfft of real rows of N points and irfft of their bins, with a factor of 1 and of 2 on the inner bins: each is the gradient of the other with one of
/// these factors.
void expect_real_transforms(const op_test& here, std::int64_t N, std::int64_t rows, std::int64_t most = 128) {
  const std::int64_t M = N / 2 + 1;
  const host x = random({rows, N}, here.type, std::uint64_t(N)), z = random({rows, M, 2}, here.type, std::uint64_t(N) + 5000);
  const bins k = some_of(M, most), n = some_of(N, most);
  const auto scale = [N](complex& b, std::int64_t at, double inner) {
    const double f = at == 0 || 2 * at == N ? 0.5 : 0.5 * inner;
    b = {f * b.re, f * b.im};
  };
  for (const double inner : {1.0, 2.0}) {
    const auto y = here.run<op::rfft>({x}, real_transform(N, 0.5, inner));
    const auto back = here.run<op::irfft>({z}, real_transform(N, 0.5, inner));
    for (const std::int64_t r : ends(rows)) {
      auto expected = compared(here, row_of_numbers(x, r), -1, k);
      for (std::size_t i = 0; i < k.size(); ++i) scale(expected[i], k[i], inner);
      EXPECT_TRUE(close(at_bins(row_of_pairs(y.at(0), r), k), expected, error_of(here, double(N)))) << N << " points, inner " << inner;
      auto all = row_of_bins(z, r, N);
      for (std::int64_t i = 0; i < N; ++i) scale(all[std::size_t(i)], i, inner);
      EXPECT_TRUE(close(at_bins(row_of_numbers(back.at(0), r), n), compared(here, all, 1, n), error_of(here, double(N))))
          << N << " points back, inner " << inner;
    }
  }
}

}  // namespace isotope::op_test
