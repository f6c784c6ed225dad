// A sum of squares as squares.comp stores it: the bits of the largest magnitude, then (high, low) in units of 2^-(2 (unit - 127)).
#include "math/two_float.glsl"

// Returns the exponent field of the factor that scales the largest magnitude into [1, 4); the factor is always a normal number.
uint unit_of(uint top) { return uint(clamp(254 - int(top >> 23), 1, 253)); }

// sqrt(sum) k, rounded once, for k >= 0.
float norm_of(uint top, vec2 sum, float k) {
  if (top >= 0x7f800000u) return uintBitsToFloat(top > 0x7f800000u ? 0x7fc00000u : top);
  const vec2 r = root(sum);
  vec2 scaled = product(r.x, k);
  scaled.y += r.y * k;
  return value_of(scaled) * uintBitsToFloat((254 - unit_of(top)) << 23);
}
float norm_of(uint64_t part, float k) { return norm_of(u32_ref(part).at[0], vec2(f32_ref(part).at[1], f32_ref(part).at[2]), k); }
