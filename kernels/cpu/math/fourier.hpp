#pragma once
/// Fourier transforms of one row in f32, with real and imaginary parts in separate arrays.
///
/// Runs Stockham passes of radix 4, and one of radix 2 where N is not a power of four: they need no bit reversal, and both sides of a pass are
/// contiguous in the inner loop. Other lengths become a circular convolution with a chirp (Bluestein), padded to a power of two of at least 2 N - 1.
/// Twiddle factors and chirps are computed in f64 and rounded once. Bound by the caches: each pass reads and writes the row.
/// Sources: Stockham 1966 (in Cochran et al. 1967); Bluestein 1970.
#include <cmath>
#include <utility>

#include <isotope/kernels/cpu/rows/parallel.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

/// Complex numbers re[i] + i im[i].
struct split {
  float *re, *im;
  /// Swaps real and imaginary parts, which is i times the conjugate: a forward transform between swapped arrays is the inverse transform.
  split swapped() const { return {im, re}; }
};

/// to[j] = e^(-2 pi i j step / D), j < count. Each block of at most 64 starts with an exact angle; errors are 2^-53 per factor.
inline void twiddles(split to, std::int64_t count, std::int64_t step, std::int64_t D) {
  constexpr std::int64_t block = 64;
  const double twiddle = -6.283185307179586 / double(D);
  double re[block], im[block];
  for (std::int64_t j = 0; j < smaller(block, count); ++j) {
    const double angle = twiddle * double(j * step % D);
    re[j] = std::cos(angle);
    im[j] = std::sin(angle);
  }
  for (std::int64_t start = 0; start < count; start += block) {
    const double angle = twiddle * double(start * step % D), c = std::cos(angle), s = std::sin(angle);
    for (std::int64_t j = 0; j < smaller(block, count - start); ++j) {
      to.re[start + j] = float(c * re[j] - s * im[j]);
      to.im[start + j] = float(c * im[j] + s * re[j]);
    }
  }
}
/// to[n] = e^(-pi i n^2 / N), n < N. A block starts with an exact angle, since n^2 mod 2 N is an integer; within it the ratio of neighbours rotates
/// by a constant angle.
inline void chirps(split to, std::int64_t N) {
  constexpr std::int64_t block = 64;
  const double twiddle = -3.141592653589793 / double(N), rc = std::cos(2 * twiddle), rs = std::sin(2 * twiddle);
  for (std::int64_t start = 0; start < N; start += block) {
    const double angle = twiddle * double(start * start % (2 * N)), step = twiddle * double((2 * start + 1) % (2 * N));
    double c = std::cos(angle), s = std::sin(angle), dc = std::cos(step), ds = std::sin(step);
    for (std::int64_t n = start; n < smaller(N, start + block); ++n) {
      to.re[n] = float(c);
      to.im[n] = float(s);
      const double c1 = c * dc - s * ds, d1 = dc * rc - ds * rs;
      s = c * ds + s * dc;
      ds = dc * rs + ds * rc;
      c = c1;
      dc = d1;
    }
  }
}

/// Combines x[from + r m], r < 4, into y[to + k s], k < 4, multiplied by w[k].
struct radix4 {
  const float *ISOTOPE_RESTRICT xr, *ISOTOPE_RESTRICT xi;
  float *ISOTOPE_RESTRICT yr, *ISOTOPE_RESTRICT yi;
  std::int64_t m, s;
  ISOTOPE_INLINE void operator()(std::int64_t from, std::int64_t to, const float* wr, const float* wi) const {
    const float ar = xr[from] + xr[from + 2 * m], ai = xi[from] + xi[from + 2 * m];
    const float br = xr[from] - xr[from + 2 * m], bi = xi[from] - xi[from + 2 * m];
    const float cr = xr[from + m] + xr[from + 3 * m], ci = xi[from + m] + xi[from + 3 * m];
    const float dr = xi[from + m] - xi[from + 3 * m], di = xr[from + 3 * m] - xr[from + m];
    yr[to] = ar + cr;
    yi[to] = ai + ci;
    put(to + s, br + dr, bi + di, wr[1], wi[1]);
    put(to + 2 * s, ar - cr, ai - ci, wr[2], wi[2]);
    put(to + 3 * s, br - dr, bi - di, wr[3], wi[3]);
  }
  ISOTOPE_INLINE void put(std::int64_t to, float re, float im, float c, float d) const {
    yr[to] = re * c - im * d;
    yi[to] = re * d + im * c;
  }
};
/// One pass over a row of 4 m s numbers, s interleaved transforms: y[q + s (4 p + k)] = w^(p k) sum_r x[q + s (p + m r)] (-i)^(r k), w = e^(-2 pi i /
/// (4 m)); twiddle[k][p s] = w^(p k).
inline ISOTOPE_CONTRACT void pass4(split x, split y, const split* twiddle, std::int64_t m, std::int64_t s) {
  ISOTOPE_CONTRACT_HERE
  const radix4 f{x.re, x.im, y.re, y.im, m * s, s};
  if (s == 1) {
    ISOTOPE_IVDEP
    for (std::int64_t p = 0; p < m; ++p) {
      const float wr[4] = {1, twiddle[1].re[p], twiddle[2].re[p], twiddle[3].re[p]},
                  wi[4] = {0, twiddle[1].im[p], twiddle[2].im[p], twiddle[3].im[p]};
      f(p, 4 * p, wr, wi);
    }
    return;
  }
  for (std::int64_t p = 0; p < m; ++p) {
    const std::int64_t at = p * s;
    const float wr[4] = {1, twiddle[1].re[at], twiddle[2].re[at], twiddle[3].re[at]},
                wi[4] = {0, twiddle[1].im[at], twiddle[2].im[at], twiddle[3].im[at]};
    ISOTOPE_IVDEP
    for (std::int64_t q = 0; q < s; ++q) f(at + q, 4 * at + q, wr, wi);
  }
}
/// The last pass where a factor of two remains: y[q] = x[q] + x[q + s], y[q + s] = x[q] - x[q + s].
inline void pass2(split x, split y, std::int64_t s) {
  for (const auto& [from, to] : {std::pair<const float*, float*>{x.re, y.re}, {x.im, y.im}}) {
    ISOTOPE_IVDEP
    for (std::int64_t q = 0; q < s; ++q) {
      to[q] = from[q] + from[q + s];
      to[q + s] = from[q] - from[q + s];
    }
  }
}
/// z[i] = z[i] w[i]
inline ISOTOPE_CONTRACT void multiply(split z, split w, std::int64_t n) {
  ISOTOPE_CONTRACT_HERE
  ISOTOPE_IVDEP
  for (std::int64_t i = 0; i < n; ++i) {
    const float re = z.re[i] * w.re[i] - z.im[i] * w.im[i];
    z.im[i] = z.re[i] * w.im[i] + z.im[i] * w.re[i];
    z.re[i] = re;
  }
}

/// A transform of N points: tables that all rows share, and buffers for each worker.
class fourier {
 public:
  /// Returns the number of points that the passes work on: N, or the size of the convolution.
  static constexpr std::int64_t points(std::int64_t N) {
    std::int64_t M = 1;
    while (M < N) M *= 2;
    if (M == N) return N;
    while (M < 2 * N - 1) M *= 2;
    return M;
  }
  static constexpr std::int64_t table_floats(std::int64_t N) {
    const std::int64_t M = points(N);
    return 6 * padded(M / 4) + (M == N ? 0 : 2 * padded(N) + 2 * padded(M));
  }
  /// Returns the size of two rows, each with additional room for the bins of a real transform.
  static constexpr std::int64_t buffer_floats(std::int64_t N) { return 2 * (2 * padded(points(N)) + padded(2)); }
  static constexpr std::int64_t padded(std::int64_t n) { return (n + 15) / 16 * 16; }

  /// Uses `buffer` only until the constructor returns.
  fourier(float* tables, float* buffer, std::int64_t N) : N_(N), M_(points(N)) {
    const auto next = [&tables](std::int64_t n) {
      const split z{tables, tables + padded(n)};
      tables += 2 * padded(n);
      return z;
    };
    twiddle_[0] = {};
    for (int k = 1; k < 4; ++k) {
      twiddle_[k] = next(M_ / 4);
      twiddles(twiddle_[k], M_ / 4, k, M_);
    }
    if (M_ == N_) return;
    chirp_ = next(N_);
    spectrum_ = next(M_);
    chirps(chirp_, N_);
    // Fills the conjugate chirp around the circle in both directions.
    const split a = first(buffer), b = second(buffer);
    const float f = 1 / float(M_);
    for (std::int64_t n = 0; n < M_; ++n) a.re[n] = a.im[n] = 0;
    for (std::int64_t n = 0; n < N_; ++n) {
      a.re[n] = a.re[n == 0 ? 0 : M_ - n] = f * chirp_.re[n];
      a.im[n] = a.im[n == 0 ? 0 : M_ - n] = -f * chirp_.im[n];
    }
    const split z = passes(a, b);
    for (std::int64_t n = 0; n < M_; ++n) {
      spectrum_.re[n] = z.re[n];
      spectrum_.im[n] = z.im[n];
    }
  }

  /// The two rows of a worker; `flat` gives the memory of one of them as one array.
  split first(float* buffer) const { return {buffer, buffer + padded(M_)}; }
  split second(float* buffer) const { return first(buffer + 2 * padded(M_) + padded(2)); }
  float* flat(float* buffer) const { return second(buffer).re; }

  /// Runs the transform of first(buffer): forward, or inverse where its parts are swapped. The result is in either row; the other one is free.
  split run(float* buffer, bool inverse) const {
    split a = first(buffer), b = second(buffer);
    if (inverse) {
      a = a.swapped();
      b = b.swapped();
    }
    split z = M_ == N_ ? passes(a, b) : convolved(a, b);
    return inverse ? z.swapped() : z;
  }
  /// Returns the row that does not hold z.
  float* free_row(float* buffer, split z) const { return z.re == first(buffer).re || z.im == first(buffer).re ? flat(buffer) : buffer; }
  double row_nsec() const {
    double passes = 1;
    for (std::int64_t n = M_; n > 1; n /= 2) passes += 1;
    return double(M_) * passes * (M_ == N_ ? 0.5 : 1.2);
  }

 private:
  std::int64_t N_, M_;
  split twiddle_[4], chirp_{}, spectrum_{};

  split passes(split x, split y) const {
    std::int64_t n = M_, s = 1;
    for (; n >= 4; n /= 4, s *= 4) {
      pass4(x, y, twiddle_, n / 4, s);
      std::swap(x, y);
    }
    if (n == 1) return x;
    pass2(x, y, s);
    return y;
  }
  /// y[k] = c[k] sum_n (x[n] c[n]) / c[k - n], c[n] = e^(-pi i n^2 / N), since 2 n k = n^2 + k^2 - (k - n)^2.
  split convolved(split x, split y) const {
    multiply(x, chirp_, N_);
    for (std::int64_t n = N_; n < M_; ++n) x.re[n] = x.im[n] = 0;
    split z = passes(x, y);
    multiply(z, spectrum_, M_);
    const split other = z.re == x.re ? y : x;
    z = passes(z.swapped(), other.swapped()).swapped();
    multiply(z, chirp_, N_);
    return z;
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable
