#pragma once
/// Fourier transforms, one row per worker: complex ones, and real ones of even length N as complex ones of N / 2.
#include <isotope/kernels/cpu/body/programs.hpp>
#include <isotope/kernels/cpu/math/fourier.hpp>
#include <isotope/kernels/cpu/rows/rows.hpp>
#include <isotope/op/fft.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable {

/// Distributes rows over as many workers as 64 MiB of buffers allow, at least one row's.
struct fourier_rows {
  static constexpr std::int64_t most_floats = 16 << 20;
  static constexpr std::int64_t workers(std::int64_t N, std::int64_t rows) {
    const std::int64_t room = larger_of(1, most_floats / fourier::buffer_floats(N));
    return smaller(smaller(max_workers, room), rows);
  }
  /// Returns the bytes for rows of N complex points and a table of `own` floats.
  static constexpr std::int64_t scratch(std::int64_t N, std::int64_t rows, std::int64_t own) {
    return 4 * (fourier::padded(own) + fourier::table_floats(N) + fourier::buffer_floats(N) * larger_of(1, workers(N, rows)));
  }
  /// Calls row(transform, row number, the worker's buffer) for each row. The caller's table is at the start of the scratch memory.
  template <class F> static void run(const launch& l, std::int64_t N, std::int64_t rows, std::int64_t own, const F& row) {
    if (rows == 0) return;
    float* tables = static_cast<float*>(l.scratch) + fourier::padded(own);
    float* buffers = tables + fourier::table_floats(N);
    const fourier f(tables, buffers, N);
    const std::int64_t tasks = workers(N, rows);
    for_tasks(l, tasks, double(rows) * f.row_nsec(), [&](std::int64_t t, int slice) {
      for (std::int64_t r = t * rows / tasks; r < (t + 1) * rows / tasks; ++r) row(f, r, buffers + slice * fourier::buffer_floats(N));
    });
  }
};

/// z[n] = x[2 n] + i x[2 n + 1], and the inverse.
inline void take_apart(const float* ISOTOPE_RESTRICT x, split z, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    z.re[i] = x[2 * i];
    z.im[i] = x[2 * i + 1];
  }
}
inline void put_together(split z, float f, float* ISOTOPE_RESTRICT y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    y[2 * i] = f * z.re[i];
    y[2 * i + 1] = f * z.im[i];
  }
}

struct fft {
  static constexpr std::uint32_t inplace = 1;  // a row is read before it is written
  static constexpr std::int64_t scratch(const step_shapes& s) {
    return fourier_rows::scratch(s.in[0][-2], s.in[0].count() / (2 * s.in[0][-2]), 0);
  }
  static void run(const launch& l) {
    const view &x = l.in[0], &y = l.out[0];
    const std::int64_t N = x.dims[-2];
    fourier_rows::run(l, N, x.dims.count() / (2 * N), 0, [&](const fourier& f, std::int64_t r, float* buffer) {
      take_apart(read_row(x, r, 2 * N, f.flat(buffer)), f.first(buffer), N);
      const split z = f.run(buffer, l.constants<op::fft>().direction > 0);
      float* to = target_row(y, r, 2 * N, f.free_row(buffer, z));
      put_together(z, float(l.constants<op::fft>().factor), to, N);
      finish_row(y, r, 2 * N, to);
    });
  }
};

/// Real transforms of N points. For even N a complex transform of N / 2 takes even and odd points as real and imaginary parts; for odd N one of N
/// does the work.
struct real_fourier {
  std::int64_t N, M, points;
  float outer, inner;  // factors of outer and inner bins
  split twiddle;       // e^(-2 pi i k / N), k < M

  static constexpr std::int64_t points_of(std::int64_t N) { return N % 2 == 0 ? N / 2 : N; }
  static constexpr std::int64_t own_floats(std::int64_t N) { return N % 2 == 0 ? 2 * fourier::padded(N / 2 + 1) : 0; }
  static constexpr std::int64_t scratch(std::int64_t N, std::int64_t rows) {
    return fourier_rows::scratch(points_of(N), rows, own_floats(N));
  }
  real_fourier(const launch& l, std::int64_t length)
      : N(length),
        M(N / 2 + 1),
        points(points_of(N)),
        outer(float(l.constants<op::rfft>().factor)),
        inner(float(l.constants<op::rfft>().factor * l.constants<op::rfft>().inner)),
        twiddle{static_cast<float*>(l.scratch), static_cast<float*>(l.scratch) + fourier::padded(M)} {
    if (N % 2 == 0) twiddles(twiddle, M, 1, N);
  }
};

struct rfft : real_fourier {
  using real_fourier::real_fourier;
  static constexpr std::int64_t scratch(const step_shapes& s) { return real_fourier::scratch(s.in[0][-1], s.in[0].rows()); }

  static void run(const launch& l) {
    const view &x = l.in[0], &y = l.out[0];
    if (x.dims.count() == 0) return;
    const rfft t(l, x.dims[-1]);
    fourier_rows::run(l, t.points, x.dims.rows(), own_floats(t.N), [&](const fourier& f, std::int64_t r, float* buffer) {
      const float* from = read_row(x, r, t.N, f.flat(buffer));
      const split a = f.first(buffer);
      if (t.N % 2 == 0) take_apart(from, a, t.points);
      else
        for (std::int64_t n = 0; n < t.N; ++n) {
          a.re[n] = from[n];
          a.im[n] = 0;
        }
      const split z = f.run(buffer, false);
      float* to = target_row(y, r, 2 * t.M, f.free_row(buffer, z));
      if (t.N % 2 == 0) t.even(z, to);
      else t.odd(z, to);
      finish_row(y, r, 2 * t.M, to);
    });
  }

 private:
  /// With E and O the transforms of the even and the odd points, z = E + i O, y[k] = E[k] + w^k O[k].
  ISOTOPE_CONTRACT void even(split z, float* ISOTOPE_RESTRICT y) const {
    ISOTOPE_CONTRACT_HERE
    const std::int64_t h = points;
    y[0] = outer * (z.re[0] + z.im[0]);
    y[1] = 0;
    const float half = 0.5f * inner;
    for (std::int64_t k = 1; k < h; ++k) {
      const float er = z.re[k] + z.re[h - k], ei = z.im[k] - z.im[h - k];
      const float odd_r = z.im[k] + z.im[h - k], odd_i = z.re[h - k] - z.re[k];
      y[2 * k] = half * (er + (twiddle.re[k] * odd_r - twiddle.im[k] * odd_i));
      y[2 * k + 1] = half * (ei + (twiddle.re[k] * odd_i + twiddle.im[k] * odd_r));
    }
    y[2 * h] = outer * (z.re[0] - z.im[0]);
    y[2 * h + 1] = 0;
  }
  void odd(split z, float* y) const {
    put_together(z, inner, y, M);
    y[0] = outer * z.re[0];
    y[1] = 0;
  }
};

struct irfft : real_fourier {
  using real_fourier::real_fourier;
  static constexpr std::int64_t scratch(const step_shapes& s) { return real_fourier::scratch(s.out[0][-1], s.out[0].rows()); }

  static void run(const launch& l) {
    const view &x = l.in[0], &y = l.out[0];
    if (x.dims.count() == 0) return;
    const irfft t(l, y.dims[-1]);
    fourier_rows::run(l, t.points, y.dims.rows(), own_floats(t.N), [&](const fourier& f, std::int64_t r, float* buffer) {
      const float* from = read_row(x, r, 2 * t.M, f.flat(buffer));
      if (t.N % 2 == 0) t.even(from, f.first(buffer));
      else t.odd(from, f.first(buffer));
      const split z = f.run(buffer, true);
      float* to = target_row(y, r, t.N, f.free_row(buffer, z));
      if (t.N % 2 == 0) put_together(z, 1, to, t.points);
      else
        for (std::int64_t n = 0; n < t.N; ++n) to[n] = z.re[n];
      finish_row(y, r, t.N, to);
    });
  }

 private:
  /// z[k] = E[k] + i O[k] with E[k] = x[k] + conj x[N/2 - k] and O[k] = w^-k (x[k] - conj x[N/2 - k]).
  ISOTOPE_CONTRACT void even(const float* ISOTOPE_RESTRICT x, split z) const {
    ISOTOPE_CONTRACT_HERE
    const std::int64_t h = points;
    z.re[0] = outer * (x[0] + x[2 * h]);
    z.im[0] = outer * (x[0] - x[2 * h]);
    const float half = 0.5f * inner;
    for (std::int64_t k = 1; k < h; ++k) {
      const float er = x[2 * k] + x[2 * (h - k)], ei = x[2 * k + 1] - x[2 * (h - k) + 1];
      const float dr = x[2 * k] - x[2 * (h - k)], di = x[2 * k + 1] + x[2 * (h - k) + 1];
      z.re[k] = half * (er - (twiddle.re[k] * di - twiddle.im[k] * dr));
      z.im[k] = half * (ei + (twiddle.re[k] * dr + twiddle.im[k] * di));
    }
  }
  /// All N bins.
  void odd(const float* ISOTOPE_RESTRICT x, split z) const {
    z.re[0] = outer * x[0];
    z.im[0] = 0;
    const float half = 0.5f * inner;
    for (std::int64_t k = 1; k < M; ++k) {
      z.re[k] = z.re[N - k] = half * x[2 * k];
      z.im[k] = half * x[2 * k + 1];
      z.im[N - k] = -z.im[k];
    }
  }
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::portable

namespace isotope::cpu {
template <VectorProgram P> struct kernel<op::fft, P, kernels::portable> : portable::fft {};
template <VectorProgram P> struct kernel<op::rfft, P, kernels::portable> : portable::rfft {};
template <VectorProgram P> struct kernel<op::irfft, P, kernels::portable> : portable::irfft {};
}  // namespace isotope::cpu
