#pragma once
/// y = e^x over all of f32. It uses whole powers of two, because the table of steps in power.hpp would overflow its range.
///
/// The steps and the polynomial are those of cpu/math/exp.hpp.
#include <isotope/kernels/cpu/native/math/lanes.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise {

/// e^x for |x| < 2^21; p is within 2^-27 of e^r - 1.
ISOTOPE_INLINE power power_of_e(vector x) {
  constexpr float c[] = {0.5f, 0.16666576305560638f, 0.041666553762567638f, 0.0083632927530306023f, 0.0013926325618133462f};
  const vector shifted = madd(x, all(1.44269504f), all(power::shift));
  const vector k = shifted - power::shift;
  const vector r = madd(k, all(2.12194440e-4f), madd(k, all(-0.693359375f), x));  // k 0.693359375 is exact
  return {shifted, madd(r * r, polynomial(r, c), r)};
}

/// 2^k (1 + p), rounded at 1 + p and, below 2^-126, once more.
ISOTOPE_INLINE vector whole_power(const power& e) {
  vector y = 1.0f + e.p;
  if constexpr (config::has_scaled_lanes) {
    isa::scale_lanes(y, e.shifted - power::shift);
    return y;
  } else {
    using whole_numbers __attribute__((vector_size(config::vector_bytes))) = std::int32_t;
    const auto k = std::bit_cast<whole_numbers>(e.shifted) - std::bit_cast<std::int32_t>(power::shift);
    const auto half = std::bit_cast<words>(k >> 1), rest = std::bit_cast<words>(k) - half;  // two factors prevent early overflow
    return y * from_bits((half << 23) + 0x3f80'0000u) * from_bits((rest << 23) + 0x3f80'0000u);
  }
}

/// Error: 1.25 ULP. +-inf, NaN, overflow and subnormal results are handled.
ISOTOPE_INLINE vector exp(vector x) { return whole_power(power_of_e(at_least(at_most(x, 105.0f), -105.0f))); }

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::native::lanewise
