#pragma once
/// y = sqrt x: the processor's own instruction, correctly rounded.
///
/// g++ leaves a loop over std::sqrt scalar, because errno has to be set below zero, unless it is given -fno-math-errno; hence the vectors of
/// four, which lose nothing: the square root unit does four elements in the time of a wider vector's four.
#include <cstring>

#include <isotope/kernels/cpu/math/arithmetic.hpp>
#include <isotope/kernels/cpu/math/map.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace math {

/// Error: 0.5 ULP. sqrt +-0 = +-0, NaN below zero.
inline float sqrt(float x) { return std::sqrt(x); }
inline double sqrt(double x) { return std::sqrt(x); }

/// y[i] = sqrt x[i]; y may be x.
template <class T> void sqrt(const T* x, T* y, std::int64_t n) {
  map(n, y, [](auto v) ISOTOPE_INLINE_LAMBDA { return sqrt(v); }, x);
}
inline void sqrt(const float* x, float* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    config::float_quad v;
    std::memcpy(&v, x + i, sizeof v);
    v = ISOTOPE_SQRT_QUAD(v);
    std::memcpy(y + i, &v, sizeof v);
  }
  for (; i < n; ++i) y[i] = sqrt(x[i]);
}

}  // namespace math
}  // namespace arch
}  // namespace isotope::cpu
