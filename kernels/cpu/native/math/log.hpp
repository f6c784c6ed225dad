#pragma once
/// y = ln x, by the steps and the polynomial of cpu/math/log.hpp.
#include <isotope/kernels/cpu/math/log.hpp>
#include <isotope/kernels/cpu/native/math/lanes.hpp>
#include <limits>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise {

/// Error: 1 ULP. ln(+-0) = -inf, ln(inf) = inf, NaN below zero; subnormal numbers are handled.
ISOTOPE_INLINE vector log(vector x) {
  using whole_numbers __attribute__((vector_size(config::vector_bytes))) = std::int32_t;
  constexpr float infinity = std::numeric_limits<float>::infinity(), least_normal = std::numeric_limits<float>::min();
  constexpr std::uint32_t sqrt_half = 0x3f35'04f3u;
  const auto small = x < least_normal;
  const words t = bits(small ? x * 0x1p23f : x) - sqrt_half;
  const vector e = __builtin_convertvector(std::bit_cast<whole_numbers>(t) >> 23, vector) - (small ? all(23.0f) : vector{});
  const vector f = from_bits((t & 0x7f'ffffu) + sqrt_half) - 1.0f, f2 = f * f;
  const vector tail = madd(all(-0.5f), f2, madd(e, all(-2.12194440e-4f), f * f2 * polynomial(f, math::log_terms)));
  const vector y = madd(e, all(0.693359375f), f + tail);  // e 0.693359375 is exact
  const vector above = x < infinity ? y : x;              // inf and NaN
  return x > 0.0f ? above : x == 0.0f ? all(-infinity) : all(std::numeric_limits<float>::quiet_NaN());
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise
