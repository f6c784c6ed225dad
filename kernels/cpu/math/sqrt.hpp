#pragma once
/// y = sqrt x: the processor's own instruction, correctly rounded.
///
/// g++ calls the library for negative numbers (errno) and so leaves a loop over std::sqrt scalar, unless the function says otherwise; a caller
/// that writes its own loop over math::sqrt(float) needs ISOTOPE_NO_ERRNO or -fno-math-errno for speed, not for its result.
#include <isotope/kernels/cpu/math/arithmetic.hpp>
#include <isotope/kernels/cpu/math/map.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace math {

/// Error: 0.5 ULP. sqrt +-0 = +-0, NaN below zero.
inline float sqrt(float x) { return ISOTOPE_SQRT(x); }
inline double sqrt(double x) { return ISOTOPE_SQRT(x); }

/// y[i] = sqrt x[i]; y may be x.
template <class T> ISOTOPE_NO_ERRNO void sqrt(const T* x, T* y, std::int64_t n) {
  map(n, y, [](auto v) ISOTOPE_NO_ERRNO { return ISOTOPE_SQRT(v); }, x);
}

}  // namespace math
}  // namespace arch
}  // namespace isotope::cpu
