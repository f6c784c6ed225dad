#pragma once
#include <bit>

#include "../core/square_root.hpp"
#include "../core/tape.hpp"

namespace isotope {

/// The normalisation, with NumPy's names. backward: the inverse is divided by N; ortho: both directions by sqrt(N); forward: the forward one by N.
enum class fft_norm : std::uint8_t { backward, ortho, forward };

namespace op {
/// Checks and factors that the transforms share.
struct fourier {
  static constexpr bool floating(shape_rule& r) {
    return r.require(is_floating(r.type(0)), "needs a floating-point tensor; cast it first");
  }
  /// Checks the operand; axis -k holds the points, or the bins.
  static constexpr bool sized(shape_rule& r, int k) {
    const shape& x = r.dims(0);
    return r.require(x.axis(-k).slot < 0, "the axis of a transform needs a size that is known when the program is planned") &&
           r.require(x[-k] >= 1, "a transform needs at least one point");
  }
  static constexpr bool pairs(shape_rule& r) {
    const shape& x = r.dims(0);
    return r.require(x.rank >= 2 && x[-1] == 2, "x must be [...,N,2]: complex numbers are pairs on the last axis") && sized(r, 2);
  }
  /// 5 N log2 N for each transform of N complex points, half of that for N real ones, with log2 N rounded up. `numbers` counts two per complex point.
  static constexpr std::int64_t flops(std::int64_t numbers, std::int64_t N) {
    return 5 * numbers * std::int64_t(std::bit_width(std::uint64_t(N < 1 ? 1 : N) - 1)) / 2;
  }
  static constexpr double factor(fft_norm norm, bool inverse, std::int64_t N) {
    if (N < 1) return 1;
    if (norm == fft_norm::ortho) return 1 / square_root(double(N));
    return (norm == fft_norm::backward) == inverse ? 1 / double(N) : 1;
  }
};
struct fft {
  struct constants {
    std::int64_t direction = -1;  // -1 forward, 1 inverse
    double factor = 1;            // factor on the sums
    static constexpr constants of(const attributes& a) { return {.direction = a.i[0], .factor = a.f[0]}; }
    constexpr operator attributes() const { return {.i = {direction}, .f = {factor}}; }
  };
  static constexpr std::string_view name = "fft";
  static constexpr std::int64_t flops(const step_shapes& s) { return fourier::flops(s.out[0].count(), s.out[0][-2]); }
  static constexpr void infer(shape_rule& r) {
    if (fourier::floating(r) && fourier::pairs(r)) r.yield(r.dims(0), r.type(0));
  }
  /// The gradient applies the conjugate transpose, which is the transform in the other direction.
  static constexpr void gradient(pullback& g) {
    auto c = constants::of(g.attr);
    c.direction = -c.direction;
    g.give(0, apply<fft>(place::current(), c, g.dy()));
  }
};
/// With the same constants, rfft and irfft are transposes of each other as real matrices, so each is the other's gradient.
struct rfft {
  struct constants {
    std::int64_t points = 0;  // N, which the shape rule of rfft fills in
    double factor = 1;        // factor on the sums
    double inner = 1;         // further factor on all bins but 0 and N/2
    static constexpr constants of(const attributes& a) { return {.points = a.i[0], .factor = a.f[0], .inner = a.f[1]}; }
    constexpr operator attributes() const { return {.i = {points}, .f = {factor, inner}}; }
  };
  static constexpr std::string_view name = "rfft";
  static constexpr std::int64_t flops(const step_shapes& s) { return fourier::flops(s.in[0].count(), s.constants<rfft>().points); }
  static constexpr void infer(shape_rule& r);
  static constexpr void gradient(pullback& g);
};
struct irfft {
  using constants = rfft::constants;
  static constexpr std::string_view name = "irfft";
  static constexpr std::int64_t flops(const step_shapes& s) { return fourier::flops(s.out[0].count(), s.constants<irfft>().points); }
  static constexpr void infer(shape_rule& r) {
    const std::int64_t N = constants::of(r.attr).points;
    if (!fourier::floating(r) || !fourier::pairs(r)) return;
    const shape& x = r.dims(0);
    if (!fourier::sized(r, 2)) return;
    if (N < 1 || x[-2] != N / 2 + 1) {
      message m;
      r.fail(m << N << " points have " << (N < 1 ? 0 : N / 2 + 1) << " bins: " << x);
      return;
    }
    shape y;
    for (int i = 0; i + 2 < x.rank; ++i) y.push(x.axis(i));
    y.push(N);
    r.yield(y, r.type(0));
  }
  static constexpr void gradient(pullback& g) { g.give(0, apply<rfft>(place::current(), g.attr, g.dy())); }
};
constexpr void rfft::infer(shape_rule& r) {
  if (!fourier::floating(r) || !r.require(r.dims(0).rank >= 1, "needs an axis of points") || !fourier::sized(r, 1) ||
      !r.require(r.dims(0).rank < max_rank, "has no room for the axis of complex pairs"))
    return;
  const std::int64_t N = r.dims(0)[-1];
  auto c = constants::of(r.attr);
  c.points = N;
  r.attr = c;
  shape y = r.dims(0).with_cols(N / 2 + 1);
  y.push(2);
  r.yield(y, r.type(0));
}
constexpr void rfft::gradient(pullback& g) { g.give(0, apply<irfft>(place::current(), g.attr, g.dy())); }

template <Machine M> constexpr tensor<M> fft_of(tensor<M> x, std::int64_t direction, fft_norm norm, place at) {
  const double factor = fourier::factor(norm, direction > 0, x.rank() >= 2 ? x[-2] : 1);
  return apply<fft>(at, fft::constants{.direction = direction, .factor = factor}, x);
}
}  // namespace op

// Complex numbers are pairs (real, imaginary) on the last axis. The axis before it, or the last axis of a real tensor, is transformed; use `permute` for
// another axis. N is arbitrary; if it is not a power of two, a transform costs three transforms of the next power of two that is at least 2 N - 1.

/// y[k] = f sum_n x[n] e^(-2 pi i n k / N), f = 1, 1/sqrt(N) or 1/N by the norm.
///
/// @param x  (..., N, 2)  N >= 1
/// @return   (..., N, 2)
/// @error    no pairs on the last axis, no points, N is a scalar dimension, integers
/// Source: Cooley & Tukey 1965; Bluestein 1970 for lengths that are not a power of two.
template <Machine M> constexpr tensor<M> fft(tensor<M> x, fft_norm norm = fft_norm::backward, place at = place::current()) {
  return op::fft_of(x, -1, norm, at);
}
/// y[n] = f sum_k x[k] e^(2 pi i n k / N), f = 1/N, 1/sqrt(N) or 1 by the norm: ifft(fft(x)) = x.
///
/// @param x  (..., N, 2)  N >= 1
/// @return   (..., N, 2)
/// @error    as fft
template <Machine M> constexpr tensor<M> ifft(tensor<M> x, fft_norm norm = fft_norm::backward, place at = place::current()) {
  return op::fft_of(x, 1, norm, at);
}
/// Bins 0 to N/2 of the fft of a real tensor; the other bins are their conjugates.
///
/// @param x  (..., N)  N >= 1
/// @return   (..., N/2 + 1, 2)
/// @error    no points, N is a scalar dimension, six axes, integers
template <Machine M> constexpr tensor<M> rfft(tensor<M> x, fft_norm norm = fft_norm::backward, place at = place::current()) {
  return apply<op::rfft>(at, op::rfft::constants{.factor = op::fourier::factor(norm, false, x.rank() >= 1 ? x[-1] : 1)}, x);
}
/// The real tensor of N points whose bins 0 to N/2 are x: irfft(rfft(x), N) = x. The imaginary parts of bin 0, and of bin N/2 for even N,
/// are ignored.
///
/// @param x  (..., N/2 + 1, 2)
/// @return   (..., N)
/// @error    another number of bins, N < 1, integers
template <Machine M>
constexpr tensor<M> irfft(tensor<M> x, std::int64_t N, fft_norm norm = fft_norm::backward, place at = place::current()) {
  return apply<op::irfft>(at, op::irfft::constants{.points = N, .factor = op::fourier::factor(norm, true, N), .inner = 2}, x);
}

}  // namespace isotope
