#pragma once
/// The building blocks of element functions on whole vectors. Each rounds the same way whatever the contraction flags: `madd` rounds once, a b and a
/// + b separately. There are no branches: selections are made by lane, and NaN passes through the arithmetic.
#include <bit>
#include <cstdint>
#include <isotope/backend/cpu/instructions.hpp>
#include <isotope/kernels/cpu/native/gemm/blocking.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise {

using words __attribute__((vector_size(config::vector_bytes))) = std::uint32_t;

ISOTOPE_INLINE vector all(float x) { return x - vector{}; }
/// a b + c, rounded once.
ISOTOPE_INLINE vector madd(vector a, vector b, vector c) { return isa::fma_lanes(a, b, c); }
/// c[I] + c[I+1] x + ... + c[N-1] x^(N-1-I), by Horner's rule.
template <std::size_t I = 0, std::size_t N> ISOTOPE_INLINE vector polynomial(vector x, const float (&c)[N]) {
  if constexpr (I + 1 == N) return all(c[I]);
  else return madd(polynomial<I + 1>(x, c), x, all(c[I]));
}

/// c[0] + c[1] x + ... + c[N-1] x^(N-1) + x^N.
template <std::size_t I = 0, std::size_t N> ISOTOPE_INLINE vector monic(vector x, const float (&c)[N]) {
  if constexpr (I + 1 == N) return x + c[I];
  else return madd(monic<I + 1>(x, c), x, all(c[I]));
}

ISOTOPE_INLINE words bits(vector x) { return std::bit_cast<words>(x); }
ISOTOPE_INLINE vector from_bits(words u) { return std::bit_cast<vector>(u); }
ISOTOPE_INLINE vector magnitude(vector x) { return from_bits(bits(x) & 0x7fff'ffffu); }
/// y >= 0 with the sign of x.
ISOTOPE_INLINE vector with_sign(vector y, vector x) { return from_bits(bits(y) | (bits(x) & 0x8000'0000u)); }
/// Return the larger and the smaller of a and b; b where one is NaN.
ISOTOPE_INLINE vector larger(const vector& a, const vector& b) {
  if constexpr (config::has_ordered_lanes) {
    vector y;
    isa::take_larger(y, a, b);
    return y;
  } else {
    return a > b ? a : b;
  }
}
ISOTOPE_INLINE vector smaller(const vector& a, const vector& b) {
  if constexpr (config::has_ordered_lanes) {
    vector y;
    isa::take_smaller(y, a, b);
    return y;
  } else {
    return a < b ? a : b;
  }
}
/// Clamp x from above and from below; NaN is kept.
ISOTOPE_INLINE vector at_most(vector x, float bound) { return smaller(all(bound), x); }
ISOTOPE_INLINE vector at_least(vector x, float bound) { return larger(all(bound), x); }

/// e^t as 2^k (1 + p). `shifted` also encodes k: its bits are those of `shift` plus k.
struct power {
  static constexpr float shift = 0x1.8p23f;  // adding it leaves the nearest whole number in the low bits
  vector shifted, p;
};

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise
