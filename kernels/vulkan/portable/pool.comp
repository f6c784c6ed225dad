#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// One row of each of several packed sequences, a workgroup per sequence. Parties of invocations share its rows, an invocation four columns; their sums are added in
// the order of the parties. Bound by bytes.
#include "rows/rows.glsl"
#include "rows/packed_rows.glsl"
#include "math/two_float.glsl"

layout(constant_id = 5) const uint TYPE = F32;
layout(constant_id = 6) const bool FIRST = false;      // takes the first row of each sequence instead of the mean
layout(constant_id = 7) const bool NORMALISE = false;  // divides by the norm, at least LEAST_NORM

const float LEAST_NORM = 1e-12;
const uint FLIGHT = 4;  // rows of an invocation

layout(push_constant, scalar) uniform push {
  uint64_t x;               // (N, C)
  uint64_t starts;          // (B + 1) i32
  uint64_t y;               // (B, C)
  uint x_stride, y_stride;  // of rows, in elements
  uint N, B, C;
};

shared vec4 sums[WG];

float mean_of(float sum, uint count) { return count < 2 ? sum : value_of(quotient(vec2(sum, 0.0), float(count))); }

void main() {
  const uint b = group_index(), lane = gl_LocalInvocationID.x;
  if (b >= B) return;
  const uint from = start_of(starts, b, N), end = start_of(starts, b + 1, N), count = end <= from ? 0 : FIRST ? 1 : end - from;
  const uint blocks = (C + 3) / 4, parties = WG / blocks, party = lane / blocks, at = lane % blocks;
  vec4 r = vec4(0.0);
  if (party < parties)
    for (uint n = party; n < count; n += FLIGHT * parties) {
      vec4 held[FLIGHT];
      [[unroll]] for (uint j = 0; j < FLIGHT; ++j) {
        const uint row = n + j * parties;
        held[j] = row < count ? load_columns(x, (from + row) * x_stride, at, C, TYPE) : vec4(0.0);
      }
      [[unroll]] for (uint j = 0; j < FLIGHT; ++j) r += held[j];
    }
  sums[lane] = r;
  barrier();
  for (uint i = 1; i < parties; ++i) r += sums[i * blocks + at];  // in party 0; llvmpipe loses invocations in loops behind a condition
  [[unroll]] for (uint c = 0; c < 4; ++c) r[c] = mean_of(r[c], count);
  if (NORMALISE) {
    // Squares of numbers below 1e-19 vanish and of those above 1e19 are infinite, so numbers are scaled by a power of two near the largest one.
    const float top = team_max(party == 0 ? max_of(abs(r)) : 0.0);
    const float unit = top > 0.0 && is_finite(top) ? uintBitsToFloat(clamp((floatBitsToUint(top) >> 23) & 0xffu, 1u, 253u) << 23) : 1.0;
    r /= unit;
    const float norm = value_of(root(vec2(team_sum(party == 0 ? sum_of(r * r) : 0.0), 0.0))), least = LEAST_NORM / unit;
    r /= is_nan(norm) || norm > least ? norm : least;
  }
  if (party == 0) store_columns(y, b * y_stride, at, C, TYPE, r);
}
