#pragma once
/// y = sin x and y = cos x.
///
/// x = k pi/2 + r with |r| <= pi/4, computed in f64: pi/2 is a number of 33 bits, whose product with k < 2^20 is exact, and a rest.
/// Numbers above 2^20 are left to the standard library's functions in f64, which reduce any number.
#include <isotope/kernels/cpu/math/arithmetic.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math {

/// Whether sine_shifted takes x: NaN and infinity are not among these numbers.
ISOTOPE_INLINE bool sine_takes(float x) { return magnitude(x) <= 0x1p20f; }

/// sin(x + Quarters pi/2) for |x| <= 2^20. Error: 2 ULP. sin(+-0) = +-0.
template <std::uint32_t Quarters> ISOTOPE_INLINE float sine_shifted(float x) {
  constexpr float s[] = {-0.16666667f, 0.0083333319f, -0.00019840083f, 2.7249314e-6f};  // Chebyshev interpolation, within 2^-35
  constexpr float c[] = {-0.5f, 0.041666664f, -0.00138883f, 2.4547437e-5f};             // within 2^-30
  constexpr double round = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
  const double a = magnitude(x), shifted = madd(a, 0.63661977236758134, round), k = shifted - round;
  const float r = float(madd(k, -6.0771005065061922e-11, madd(k, -1.5707963267341256, a))), t = r * r;
  const auto quarter = std::uint32_t(std::bit_cast<std::uint64_t>(shifted)) + Quarters;
  const float sine = madd(r * t, polynomial(t, s), r), cosine = madd(t, polynomial(t, c), 1.0f);
  const std::uint32_t negative = (quarter & 2u) << 30, odd = (Quarters & 1u) == 0 ? bits(x) & 0x8000'0000u : 0;
  return from_bits(bits(select(0u - (quarter & 1u), cosine, sine)) ^ negative ^ odd);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math
