#version 460
#extension GL_GOOGLE_include_directive : require
// One row of each of several packed sequences, a workgroup per sequence. Bound by bytes; with a norm, rows are read twice.
#include "access.glsl"
#include "math/two_float.glsl"
#include "rows/packed_rows.glsl"

layout(constant_id = 2) const uint TYPE = F32;
layout(constant_id = 3) const bool FIRST = false;      // takes the first row of each sequence instead of the mean
layout(constant_id = 4) const bool NORMALISE = false;  // divides by the norm, at least LEAST_NORM

const float LEAST_NORM = 1e-12;

layout(push_constant, scalar) uniform push {
  uint64_t x;               // (N, C)
  uint64_t starts;          // (B + 1) i32
  uint64_t y;               // (B, C)
  uint x_stride, y_stride;  // of rows, in elements
  uint N, B, C;
};

shared vec2 squares[WG];
shared float tops[WG];

vec2 pooled(uint from, uint count, uint c) {
  vec2 sum = vec2(0.0);
  for (uint n = 0; n < count; ++n) sum = plus(sum, load(x, (from + n) * x_stride + c, TYPE));
  return count < 2 ? sum : quotient(sum, float(count));
}

void main() {
  const uint b = group_index(), lane = gl_LocalInvocationID.x;
  if (b >= B) return;
  const uint from = start_of(starts, b, N), end = start_of(starts, b + 1, N), count = end <= from ? 0 : FIRST ? 1 : end - from;
  float by = 1.0, unit = 1.0;
  if (NORMALISE) {
    // Squares of numbers below 1e-19 vanish and of those above 1e19 are infinite, so numbers are scaled by a power of two near the largest one.
    float top = 0.0;
    for (uint c = lane; c < C; c += WG) top = max(top, abs(value_of(pooled(from, count, c))));
    tops[lane] = top;
    barrier();
    for (uint k = 0; k < WG; ++k) top = max(top, tops[k]);
    if (top > 0.0 && is_finite(top)) unit = uintBitsToFloat(clamp((floatBitsToUint(top) >> 23) & 0xffu, 1u, 253u) << 23);
    vec2 own = vec2(0.0);
    for (uint c = lane; c < C; c += WG) {
      const float v = value_of(pooled(from, count, c)) / unit;
      own = plus(own, v * v);
    }
    squares[lane] = own;
    barrier();
    vec2 all = vec2(0.0);
    for (uint k = 0; k < WG; ++k) all = plus(all, squares[k]);
    const float norm = value_of(root(all)), least = LEAST_NORM / unit;
    by = is_nan(norm) || norm > least ? norm : least;
  }
  for (uint c = lane; c < C; c += WG) store(y, b * y_stride + c, TYPE, value_of(pooled(from, count, c)) / unit / by);
}
