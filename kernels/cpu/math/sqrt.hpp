#pragma once
/// y = sqrt x: the processor's own instruction, correctly rounded.
///
/// Without -fno-math-errno, g++ leaves a loop over std::sqrt scalar, because it must set errno below zero; hence the vectors of four. They lose
/// nothing: the square root unit takes as long per element for wider vectors.
#include <cstring>

#include <isotope/backend/cpu/instructions.hpp>
#include <isotope/kernels/cpu/math/arithmetic.hpp>

namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math {

/// Error: 0.5 ULP. sqrt +-0 = +-0, NaN below zero.
inline float sqrt(float x) { return std::sqrt(x); }

/// y[i] = sqrt x[i]; y may be x.
inline void sqrt(const float* x, float* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    config::float_quad v;
    std::memcpy(&v, x + i, sizeof v);
    v = isa::sqrt_quad(v);
    std::memcpy(y + i, &v, sizeof v);
  }
  for (; i < n; ++i) y[i] = sqrt(x[i]);
}

}  // namespace isotope::cpu::inline ISOTOPE_CPU_ARCH_::math
