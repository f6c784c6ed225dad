#pragma once
/// What sigmoid, silu and gelu share: y / (1 + e^-t) and its derivative, from e^-|t|, which never overflows.
///
/// With E = e^-|t| the function is y / (1 + E) for t >= 0 and y E / (1 + E) below. E is multiplied in two factors, so that a result below 2^-126
/// rounds once at its own place.
#include <isotope/kernels/cpu/native/math/exp.hpp>

namespace isotope::cpu {
ISOTOPE_CPU_NAMESPACE {
namespace native::lanewise {

struct decay {
  vector near, rest;  // E = near rest, near >= 2^-126; rest = 1 unless E is smaller
  explicit ISOTOPE_INLINE decay(const power& e) {
    constexpr float least = power::shift - 125.0f;
    const vector low = e.shifted < least ? all(least) : e.shifted;
    const vector scale = power_of_two(low);
    near = madd(e.p, scale, scale);
    rest = from_bits(((bits(e.shifted) - bits(low)) << 23) + 0x3f80'0000u);
  }
};

/// y / (1 + e^-t) where x has t's sign; e = e^-|t|. Adds 2 ULP to the error of e.
ISOTOPE_INLINE vector gate(vector y, vector x, const power& e) {
  const decay d(e);
  return (x < 0.0f ? y * d.near * d.rest : y) / (1.0f + d.near);
}
/// The derivative of x / (1 + e^-t) by x, given a = |x| t': (1 + E + a E) / (1 + E)^2 for t >= 0, E (1 + E - a) / (1 + E)^2 below.
ISOTOPE_INLINE vector gate_derivative(vector a, vector x, const power& e) {
  const decay d(e);
  const vector sum = 1.0f + d.near;
  return (x < 0.0f ? (sum - a) * d.near * d.rest : madd(a, d.near, sum)) / (sum * sum);
}

}  // namespace native::lanewise
}  // namespace arch
}  // namespace isotope::cpu
