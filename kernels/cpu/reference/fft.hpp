#pragma once
/// Fourier transforms in f64: a transform of p m points is p transforms of m points, p the least prime factor. Bound by N (sum of N's prime factors)
/// flops: for a prime length it is the plain sum.
#include <isotope/op/fft.hpp>

#include <isotope/kernels/cpu/reference/body/access.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference {

struct complex {
  double re = 0, im = 0;
};
constexpr complex operator+(complex a, complex b) { return {a.re + b.re, a.im + b.im}; }
constexpr complex operator*(complex a, complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

/// Transforms rows in memory that the caller provides.
class fourier_rows {
 public:
  static constexpr std::int64_t scratch(std::int64_t N) { return 4 * N * std::int64_t(sizeof(complex)); }

  /// roots[t] = e^(direction 2 pi i t / N), each reduced to the first quadrant, so that multiples of a quarter turn are exact.
  fourier_rows(void* memory, std::int64_t N, std::int64_t direction) : N_(N), roots_(static_cast<complex*>(memory)) {
    x = roots_ + N;
    y = x + N;
    terms_ = y + N;
    for (std::int64_t t = 0; t < N; ++t) {
      const std::int64_t quarter = 4 * t / N;
      const double angle = 1.5707963267948966 * double(4 * t - quarter * N) / double(N);
      complex w{std::cos(angle), std::sin(angle)};
      for (std::int64_t q = 0; q < quarter; ++q) w = {-w.im, w.re};
      roots_[t] = {w.re, double(direction) * w.im};
    }
  }
  /// Computes y from x.
  void run() { transform(x, 1, y, N_); }

  complex *x, *y;

 private:
  std::int64_t N_;
  complex *roots_, *terms_;

  static std::int64_t least_factor(std::int64_t n) {
    for (std::int64_t p = 2; p * p <= n; ++p)
      if (n % p == 0) return p;
    return n;
  }
  /// to[k] = sum_j from[j stride] w^(j k) for n points; n stride = N.
  void transform(const complex* from, std::int64_t stride, complex* to, std::int64_t n) {
    if (n == 1) {
      to[0] = from[0];
      return;
    }
    const std::int64_t p = least_factor(n), m = n / p;
    for (std::int64_t r = 0; r < p; ++r) transform(from + r * stride, stride * p, to + r * m, m);
    for (std::int64_t k = 0; k < m; ++k) {
      for (std::int64_t r = 0; r < p; ++r) terms_[r] = to[r * m + k];
      for (std::int64_t q = 0; q < p; ++q) {
        const std::int64_t step = (k + q * m) * stride;
        complex sum = terms_[0];
        for (std::int64_t r = 1, at = step; r < p; ++r) {
          sum = sum + terms_[r] * roots_[at];
          at += step;
          if (at >= N_) at -= N_;
        }
        to[k + q * m] = sum;
      }
    }
  }
};

/// Loads complex number i of a dense tensor's row.
inline complex load_pair(const view& v, std::int64_t i) { return {load(v, 2 * i), load(v, 2 * i + 1)}; }
inline void store_pair(const view& v, std::int64_t i, complex z) {
  store(v, 2 * i, z.re);
  store(v, 2 * i + 1, z.im);
}
/// Returns the factor of bin k of a real transform of N points.
inline double bin_factor(const op::rfft::constants& c, std::int64_t k) {
  const bool inner = k != 0 && 2 * k != c.points;
  return inner ? c.factor * c.inner : c.factor;
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::reference

namespace isotope::cpu {

template <class P> struct kernel<op::fft, P, kernels::reference> {
  static constexpr std::uint32_t inplace = 1;  // in place: a row is read before it is written
  static constexpr std::int64_t scratch(const step_shapes& s) { return reference::fourier_rows::scratch(s.in[0][-2]); }
  static void run(const launch& l) {
    const view &x = l.in[0], &y = l.out[0];
    const std::int64_t N = x.dims[-2], rows = x.dims.count() / (2 * N);
    const auto [direction, f] = l.constants<op::fft>();
    reference::fourier_rows row(l.scratch, N, direction);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t n = 0; n < N; ++n) row.x[n] = reference::load_pair(x, r * N + n);
      row.run();
      for (std::int64_t k = 0; k < N; ++k) reference::store_pair(y, r * N + k, {f * row.y[k].re, f * row.y[k].im});
    }
  }
};
template <class P> struct kernel<op::rfft, P, kernels::reference> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return reference::fourier_rows::scratch(s.in[0][-1]); }
  static void run(const launch& l) {
    const view &x = l.in[0], &y = l.out[0];
    const auto c = l.constants<op::rfft>();
    const std::int64_t N = x.dims[-1], M = N / 2 + 1, rows = x.dims.count() / N;
    reference::fourier_rows row(l.scratch, N, -1);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t n = 0; n < N; ++n) row.x[n] = {reference::load(x, r * N + n), 0};
      row.run();
      for (std::int64_t k = 0; k < M; ++k) {
        const double f = reference::bin_factor(c, k);
        reference::store_pair(y, r * M + k, {f * row.y[k].re, f * row.y[k].im});
      }
    }
  }
};
/// y[n] = Re sum_k c[k] x[k] e^(2 pi i n k / N) over the bins 0 to N/2.
template <class P> struct kernel<op::irfft, P, kernels::reference> {
  static constexpr std::int64_t scratch(const step_shapes& s) { return reference::fourier_rows::scratch(s.constants<op::irfft>().points); }
  static void run(const launch& l) {
    const view &x = l.in[0], &y = l.out[0];
    const auto c = l.constants<op::irfft>();
    const std::int64_t N = c.points, M = N / 2 + 1, rows = y.dims.count() / N;
    reference::fourier_rows row(l.scratch, N, 1);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t k = 0; k < N; ++k) row.x[k] = {};
      for (std::int64_t k = 0; k < M; ++k) {
        const double f = reference::bin_factor(c, k);
        const reference::complex z = reference::load_pair(x, r * M + k);
        row.x[k] = {f * z.re, k == 0 || 2 * k == N ? 0 : f * z.im};
      }
      row.run();
      for (std::int64_t n = 0; n < N; ++n) reference::store(y, r * N + n, row.y[n].re);
    }
  }
};

}  // namespace isotope::cpu
