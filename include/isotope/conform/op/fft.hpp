#pragma once
#include "../../op/fft.hpp"
#include "../spec.hpp"

namespace isotope::conform {

/// Discrete Fourier transforms by the definition: N^2 terms, with angles reduced to one turn.
class transform_by_definition {
 public:
  explicit transform_by_definition(std::int64_t N) : N_(N) {
    for (std::int64_t k = 0; k < N; ++k) {
      cosine_.push_back(std::cos(6.283185307179586477 * double(k) / double(N)));
      sine_.push_back(std::sin(6.283185307179586477 * double(k) / double(N)));
    }
  }
  double cosine(std::int64_t n, std::int64_t k) const { return cosine_[std::size_t(n * k % N_)]; }
  double sine(std::int64_t n, std::int64_t k) const { return sine_[std::size_t(n * k % N_)]; }
  /// The error is 4 u log2 n of the root mean square.
  static double relative(const call& c, std::int64_t N) { return 4 * c.on.u() * std::fmax(1, std::log2(double(N))); }

 private:
  std::int64_t N_;
  std::vector<double> cosine_, sine_;
};

struct fourier_spec : spec_basis {
  static constexpr std::array inputs{operand_role{"x"}};
  static constexpr std::array outputs{result_role{"y"}};
  static constexpr numeric_policy policy{.sums = "butterflies of a fixed plan, in f32", .contracts = true, .nan = "in, then its row"};
  static constexpr std::array boundary{0.0, 1.0, infinity, nan};

  /// Complex to complex, rows of N pairs.
  static void complex_rows(const call& c, const array& x, int direction, answer& y) {
    const std::int64_t N = x.dims[-2], rows = x.dims.count() / (2 * N);
    const transform_by_definition t(N);
    const double f = c.constants<op::fft>().factor;
    y.resize(x.dims.count());
    for (std::int64_t r = 0; r < rows; ++r) {
      double power = 0;
      for (std::int64_t n = 0; n < 2 * N; ++n) power += x[2 * r * N + n] * x[2 * r * N + n];
      const double slack = std::fabs(f) * std::sqrt(power) * transform_by_definition::relative(c, N);
      for (std::int64_t k = 0; k < N; ++k) {
        double re = 0, im = 0;
        for (std::int64_t n = 0; n < N; ++n) {
          const double a = x[2 * (r * N + n)], b = x[2 * (r * N + n) + 1], cosine = t.cosine(n, k), sine = direction * t.sine(n, k);
          re += a * cosine - b * sine, im += a * sine + b * cosine;
        }
        y.set(2 * (r * N + k), f * re, slack);
        y.set(2 * (r * N + k) + 1, f * im, slack);
      }
    }
  }
  static double inner(const call& c, std::int64_t k, std::int64_t N) { return k == 0 || 2 * k == N ? 1 : c.constants<op::rfft>().inner; }
  /// Points to bins 0 to N/2.
  static void to_bins(const call& c, const array& x, std::int64_t N, answer& y) {
    const std::int64_t bins = N / 2 + 1, rows = x.dims.count() / N;
    const transform_by_definition t(N);
    const double factor = c.constants<op::rfft>().factor;
    y.resize(rows * bins * 2);
    for (std::int64_t r = 0; r < rows; ++r) {
      double power = 0;
      for (std::int64_t n = 0; n < N; ++n) power += x[r * N + n] * x[r * N + n];
      for (std::int64_t k = 0; k < bins; ++k) {
        const double f = factor * inner(c, k, N), slack = std::fabs(f) * std::sqrt(power) * transform_by_definition::relative(c, N);
        double re = 0, im = 0;
        for (std::int64_t n = 0; n < N; ++n) re += x[r * N + n] * t.cosine(n, k), im -= x[r * N + n] * t.sine(n, k);
        y.set(2 * (r * bins + k), f * re, slack);
        y.set(2 * (r * bins + k) + 1, k == 0 || 2 * k == N ? 0 : f * im, slack);
      }
    }
  }
  /// Bins 0 to N/2 to points.
  static void to_points(const call& c, const array& x, std::int64_t N, answer& y) {
    const std::int64_t bins = N / 2 + 1, rows = x.dims.count() / (2 * bins);
    const transform_by_definition t(N);
    const double factor = c.constants<op::irfft>().factor;
    y.resize(rows * N);
    for (std::int64_t r = 0; r < rows; ++r) {
      double power = 0;
      for (std::int64_t k = 0; k < bins; ++k)
        for (int part = 0; part < 2; ++part) power += std::pow(inner(c, k, N) * x[2 * (r * bins + k) + part], 2);
      const double slack = std::fabs(factor) * std::sqrt(power) * transform_by_definition::relative(c, N);
      for (std::int64_t n = 0; n < N; ++n) {
        double sum = 0;
        for (std::int64_t k = 0; k < bins; ++k)
          sum += inner(c, k, N) *
                 (x[2 * (r * bins + k)] * t.cosine(n, k) - (k == 0 || 2 * k == N ? 0 : x[2 * (r * bins + k) + 1] * t.sine(n, k)));
        y.set(r * N + n, factor * sum, slack);
      }
    }
  }
  /// Every small length, powers of two, primes and their neighbours. Drivers on the processor compile a kernel for each power of two that a length is
  /// or is convolved in: fast runs take lengths that share few of them, but still have every radix as the last one.
  template <class F> static void lengths(case_sink& s, F&& add) {
    static constexpr std::int64_t few[] = {1, 2, 3, 4, 8, 9, 11, 15, 16, 18, 30, 1000, 1024};
    static constexpr std::int64_t most[] = {1,  2,  3,  4,  5,  6,   7,   8,   9,   11,  12,  15,  16,   17,  31,
                                            32, 33, 60, 64, 97, 100, 128, 255, 256, 257, 360, 512, 1000, 1024};
    const bool fast = s.how() == strength::fast;
    for (const std::int64_t N : fast ? std::span<const std::int64_t>(few) : std::span<const std::int64_t>(most)) add(N, 2);
    for (const std::int64_t rows : {0, 1, 3, 65}) add(fast ? 30 : 24, rows);
    if (!fast)
      for (const std::int64_t N : {2048, 2049, 4096}) add(N, 1);
    for (int k = 0; k < s.repeats(); ++k)
      add(fast ? few[s.size(k, 0, 0, std::int64_t(std::size(few)) - 1)] : s.size(k, 0, 1, 300), s.size(k, 1, 1, 5));
  }
};

template <> struct op_spec<op::fft> : fourier_spec {
  static constexpr std::array fields{attribute_field{"direction", attribute_kind::integer, 0, -1},
                                     attribute_field{"factor", attribute_kind::number, 0, 1}};
  static void reference(const call& c, std::span<answer> y) { complex_rows(c, c.in[0], int(c.constants<op::fft>().direction), y[0]); }
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    complex_rows(c, dy[0], -int(c.constants<op::fft>().direction), dx[0]);
  }
  /// There and back: x. Each error of the spectrum, and its rounding where it is stored, comes back divided by sqrt(N), of N of them.
  static law::sides inverse(std::span<const tensor<tape>> x, const attributes& a) {
    const auto at = place::current();
    const op::fft::constants back{.direction = -op::fft::constants::of(a).direction, .factor = 1 / double(x[0][-2])};
    return {apply<op::fft>(at, back, apply<op::fft>(at, a, x[0])), x[0]};
  }
  static void inverse_slack(const call& c, answer& right) {
    const std::int64_t N = c.in[0].dims[-2];
    const double off = 2 * transform_by_definition::relative(c, N) + c.on.stored() + 2 * c.on.u();
    for (std::size_t first = 0; first < right.value.size(); first += std::size_t(2 * N)) {
      double power = 0;
      for (std::size_t k = 0; k < std::size_t(2 * N); ++k) power += right.value[first + k] * right.value[first + k];
      for (std::size_t k = 0; k < std::size_t(2 * N); ++k) right.slack[first + k] = off * std::sqrt(power);
    }
  }
  static constexpr std::array laws{law{"inverse", &inverse, &inverse_slack}};
  static void cases(case_sink& s) {
    lengths(s, [&](std::int64_t N, std::int64_t rows) {
      const bool inverse = N % 3 == 1;
      const op::fft::constants a{.direction = inverse ? 1 : -1, .factor = inverse ? 1 / double(N) : 1};
      s.add({s.x({rows, N, 2})}, a, rows > 0);
    });
    const op::fft::constants a;
    for (const std::int64_t N : s.how() == strength::fast ? std::array{2, 15, 30, 1024} : std::array{2, 15, 64, 97})
      s.put({.kind = case_kind::law, .law = 0, .attr = a, .in = {s.x({3, N, 2})}});
    s.put({.kind = case_kind::refusal, .attr = a, .in = {s.x({4, 3})}});
  }
};
template <> struct op_spec<op::rfft> : fourier_spec {
  static constexpr std::array fields{attribute_field{"factor", attribute_kind::number, 0, 1},
                                     attribute_field{"inner", attribute_kind::number, 1, 1}};
  static void reference(const call& c, std::span<answer> y) { to_bins(c, c.in[0], c.in[0].dims[-1], y[0]); }
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) { to_points(c, dy[0], c.in[0].dims[-1], dx[0]); }
  static void cases(case_sink& s) {
    lengths(s, [&](std::int64_t N, std::int64_t rows) {
      const op::rfft::constants a{.factor = N % 2 == 0 ? 1 : 1 / std::sqrt(double(N))};
      s.add({s.x({rows, N})}, a, rows > 0);
    });
    s.put({.kind = case_kind::refusal, .attr = op::rfft::constants{}, .in = {s.x({4, 0})}});
  }
};
template <> struct op_spec<op::irfft> : fourier_spec {
  static constexpr std::array fields{attribute_field{.name = "points", .slot = 0, .required = true},
                                     attribute_field{"factor", attribute_kind::number, 0, 1},
                                     attribute_field{"inner", attribute_kind::number, 1, 2}};
  static void reference(const call& c, std::span<answer> y) { to_points(c, c.in[0], c.constants<op::irfft>().points, y[0]); }
  static void gradient(const call& c, std::span<const array> dy, std::span<answer> dx) {
    to_bins(c, dy[0], c.constants<op::irfft>().points, dx[0]);
  }
  static void cases(case_sink& s) {
    lengths(s, [&](std::int64_t N, std::int64_t rows) {
      const op::irfft::constants a{.points = N, .factor = 1 / double(N), .inner = 2};
      s.add({s.x({rows, N / 2 + 1, 2})}, a, rows > 0);
    });
    s.put({.kind = case_kind::refusal, .attr = op::irfft::constants{.points = 9, .inner = 2}, .in = {s.x({4, 4, 2})}});
  }
};

}  // namespace isotope::conform
