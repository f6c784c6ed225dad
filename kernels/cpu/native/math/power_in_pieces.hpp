#pragma once
/// x 2^q(x) for results in bf16, where q is one of 32 cubics, whose coefficients are looked up in two registers each: 17 instructions without a division.
///
/// So functions like x Phi(x), whose tail reaches 2^-126 and is to keep its digits, need one power and no quotient. The cubics interpolate q at Chebyshev's nodes.
#include <array>
#include <isotope/kernels/cpu/native/math/power_of_two.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise {

/// Logarithms and powers at compile time, within 2^-40.
struct at_compile_time {
  static constexpr double ln2 = 0.69314718055994530942;
  /// ln x for x > 0: x = 2^k m with m near 1, and ln m = 2 artanh((m - 1) / (m + 1)).
  static constexpr double ln(double x) {
    double k = 0;
    for (; x > 1.5; x /= 2) ++k;
    for (; x < 0.75; x *= 2) --k;
    const double t = (x - 1) / (x + 1);
    double sum = 0;
    for (int i = 17; i > 0; i -= 2) sum = sum * t * t + 1.0 / i;
    return k * ln2 + 2 * t * sum;
  }
  /// e^x: x is halved until the series converges quickly.
  static constexpr double exp(double x) {
    int halves = 0;
    for (; x > 0.25 || x < -0.25; x /= 2) ++halves;
    double y = 1;
    for (int i = 10; i > 0; --i) y = 1 + y * x / i;
    for (; halves > 0; --halves) y *= y;
    return y;
  }
};

/// The coefficients of 32 pieces of q = F::exponent: piece n is F::width wide, with its middle at n F::width, and the last one is F::last.
template <class F> struct pieces {
  static constexpr int count = 32;
  static constexpr float width = F::width;
  // Rounding picks no piece but these.
  static constexpr float from = width * (float(F::last - count) + 0.51f), to = width * (float(F::last) + 0.49f);
  /// The coefficients of x^0 to x^3, at n modulo 32.
  std::array<std::array<float, count>, 4> c{};

  constexpr pieces() {
    constexpr double nodes[] = {-0.92387953251128674, -0.38268343236508977, 0.38268343236508977, 0.92387953251128674};
    for (int n = F::last - count + 1; n <= F::last; ++n) {
      const double m = double(width) * n;  // Newton's differences, then powers of x
      double at[4], d[4];
      for (int i = 0; i < 4; ++i) at[i] = m + double(width) / 2 * nodes[i], d[i] = F::exponent(at[i]);
      for (int k = 1; k < 4; ++k)
        for (int i = 3; i >= k; --i) d[i] = (d[i] - d[i - 1]) / (at[i] - at[i - k]);
      double p[4] = {d[3], 0, 0, 0};
      for (int i = 2; i >= 0; --i) {
        for (int k = 3; k > 0; --k) p[k] = p[k - 1] - at[i] * p[k];
        p[0] = d[i] - at[i] * p[0];
      }
      // q(to) >= 0: from there on, results are x; below zero, the other factor of the largest numbers would be nearly 2 and overflow.
      if (n == F::last) p[0] = 0x1p-26 - ((p[3] * to + p[2]) * to + p[1]) * to;
      // What rounding takes from a coefficient is given to those below it, as at the middle of the piece.
      for (std::size_t k = 4; k-- > 0;) {
        const auto rounded = float(p[k]);
        const double lost = p[k] - double(rounded);
        if (k == 3) p[2] += 3 * m * lost, p[1] -= 3 * m * m * lost, p[0] += m * m * m * lost;
        if (k == 2) p[1] += 2 * m * lost, p[0] -= m * m * lost;
        if (k == 1) p[0] += m * lost;
        c[k][std::size_t(n + count) % count] = rounded;
      }
    }
  }
  template <int K> static ISOTOPE_INLINE vector coefficient(words places) {
    alignas(64) static constexpr pieces all{};
    vector y, more;
    __builtin_memcpy(&y, all.c[K].data(), sizeof y);
    __builtin_memcpy(&more, all.c[K].data() + lanes, sizeof more);
    isa::look_up_pairs(y, places, more);
    return y;
  }
};

/// x 2^q(x), with q(x) that of the first and last piece outside of them; at least x 2^q(x) at the first one's end. NaN is kept. Needs has_pieces.
template <class F, std::size_t N> ISOTOPE_INLINE void times_power(vector (&x)[N]) {
  using of = pieces<F>;
  vector w[N], q[N];
  words n[N];
  in_step<N>([&](std::size_t i) ISOTOPE_INLINE_LAMBDA { x[i] = at_least(x[i], of::from); });
  in_step<N>([&](std::size_t i) ISOTOPE_INLINE_LAMBDA { w[i] = at_most(x[i], of::to); });
  in_step<N>([&](std::size_t i) ISOTOPE_INLINE_LAMBDA { n[i] = bits(madd(w[i], all(1 / of::width), all(power::shift))); });
  in_step<N>([&](std::size_t i) ISOTOPE_INLINE_LAMBDA { q[i] = of::template coefficient<3>(n[i]); });
  in_step<N>([&](std::size_t i) ISOTOPE_INLINE_LAMBDA { q[i] = madd(q[i], w[i], of::template coefficient<2>(n[i])); });
  in_step<N>([&](std::size_t i) ISOTOPE_INLINE_LAMBDA { q[i] = madd(q[i], w[i], of::template coefficient<1>(n[i])); });
  in_step<N>([&](std::size_t i) ISOTOPE_INLINE_LAMBDA { q[i] = madd(q[i], w[i], of::template coefficient<0>(n[i])); });
  vector y[N];
  fraction_of_power(y, q);
  in_step<N>([&](std::size_t i) ISOTOPE_INLINE_LAMBDA { x[i] = y[i] * x[i]; });
  in_step<N>([&](std::size_t i) ISOTOPE_INLINE_LAMBDA { isa::scale_lanes(x[i], q[i]); });
}
template <class F> ISOTOPE_INLINE vector times_power(const vector& x) {
  vector y[] = {x};
  times_power<F>(y);
  return y[0];
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise
