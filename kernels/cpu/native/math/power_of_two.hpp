#pragma once
/// Powers of two for results in bf16, of several vectors step by step.
///
/// Bound by the processor's view: a chain of 16 dependent instructions takes 64 clocks and needs 8 for itself, and a scheduler of 97 instructions (Sapphire
/// Rapids) holds no six of them in the order in which a loop has them. One vector after the other, x Phi(x) takes 5.7 ns there, four of them in step 4.8 each.
#include <isotope/kernels/cpu/native/math/lanes.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise {

/// Whether a vector has 16 lanes, two registers are one table, and fractions and scaling are instructions.
inline constexpr bool has_pieces = config::has_pair_tables && config::has_scaled_lanes && config::vector_bytes == 64;

/// step(0), ..., step(N - 1)
template <std::size_t N, class F> ISOTOPE_INLINE void in_step(const F& step) {
#pragma GCC unroll 16
  for (std::size_t i = 0; i < N; ++i) step(i);
}

/// y[i] = 2^(q[i] - floor(q[i])), which isa::scale_lanes multiplies by 2^floor(q[i]); 1 where q[i] is infinite. Needs has_pieces.
///
/// With f = q - floor(q) it is 1 + f P(f), P of degree 3 by Lawson's weights on the relative error, within 2^-18.4.
template <std::size_t N> ISOTOPE_INLINE void fraction_of_power(vector (&y)[N], const vector (&q)[N]) {
  constexpr float c[] = {1.0f, 0.69304484f, 0.24128021f, 0.052242473f, 0.013426686f};
  vector f[N];
  in_step<N>([&](std::size_t i) ISOTOPE_INLINE_LAMBDA { isa::take_fraction(f[i], q[i]); });
  in_step<N>([&](std::size_t i) ISOTOPE_INLINE_LAMBDA { y[i] = madd(all(c[4]), f[i], all(c[3])); });
#pragma GCC unroll 4
  for (int k = 2; k >= 0; --k) in_step<N>([&](std::size_t i) ISOTOPE_INLINE_LAMBDA { y[i] = madd(y[i], f[i], all(c[k])); });
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise
