#version 460
#extension GL_GOOGLE_include_directive : require
// Sums of squares that neither overflow nor lose bits, and finally the norm; parts are as in reference/squares.glsl. Bound by bytes: a workgroup
// takes 64 elements per invocation, half of them in registers at a time, so that the power of two that scales them needs no second read. x^2 = h^2 +
// (x - h)(x + h) with h the upper 12 bits of x: h^2 is exact, and the rest is so small that its rounding is 2^-36 of the square.
#include "access.glsl"
#include "reference/squares.glsl"

layout(constant_id = 2) const uint X = F32;        // format of the terms
layout(constant_id = 3) const bool PARTS = false;  // the terms are parts, and one workgroup adds them all
layout(constant_id = 4) const bool LAST = false;   // y is the norm, not a part
layout(constant_id = 5) const bool WIDE = true;    // x is aligned to four elements

layout(push_constant, scalar) uniform push {
  uint64_t x;        // (count) elements or parts
  uint64_t y;        // (workgroups) parts, or () f32
  uint64_t scalars;  // read if LAST
  uint count;
};

const uint BLOCKS = 8, ROUNDS = 2;  // of four elements
shared uint tops[WG];
shared vec2 sums[WG];

float factor_of(uint top, uint unit) {  // converts a sum in the unit of a part to a smaller unit
  const uint more = unit_of(top) - unit;
  return more > 60 ? 0.0 : uintBitsToFloat((127 - 2 * more) << 23);  // a sum so far below adds nothing that is kept
}
void add(inout uint top, inout vec2 sum, uint other, vec2 term) {
  const uint both = max(top, other), unit = unit_of(both);
  sum = plus(sum * factor_of(top, unit), term * factor_of(other, unit));
  top = both;
}
vec4 take(uint b) {
  if (WIDE && 4 * b + 3 < count) return load4(x, b, X);
  vec4 v = vec4(0.0);
  [[unroll]] for (uint j = 0; j < 4; ++j)
    if (4 * b + j < count) v[j] = load(x, 4 * b + j, X);
  return v;
}

void main() {
  const uint lane = gl_LocalInvocationID.x;
  uint top = 0;
  vec2 sum = vec2(0.0);
  if (PARTS) {
    for (uint t = lane; t < count; t += WG) add(top, sum, u32_ref(x).at[3 * t], vec2(f32_ref(x).at[3 * t + 1], f32_ref(x).at[3 * t + 2]));
  } else {
    for (uint round = 0; round < ROUNDS; ++round) {
      vec4 v[BLOCKS];
      uvec4 most = uvec4(0);
      [[unroll]] for (uint k = 0; k < BLOCKS; ++k) v[k] = take(((group_index() * ROUNDS + round) * BLOCKS + k) * WG + lane);
      [[unroll]] for (uint k = 0; k < BLOCKS; ++k) most = max(most, floatBitsToUint(v[k]) & 0x7fffffffu);
      const uint here = max(max(most.x, most.y), max(most.z, most.w));
      const float scale = uintBitsToFloat(unit_of(here) << 23);
      vec2 own = vec2(0.0);
      [[unroll]] for (uint k = 0; k < BLOCKS; ++k)
        [[unroll]] for (uint j = 0; j < 4; ++j) {
          const float g = v[k][j] * scale, h = uintBitsToFloat(floatBitsToUint(g) & 0xfffff000u);
          own = plus(own, h * h);
          precise const float rest = own.y + (g - h) * (g + h);
          own.y = rest;
        }
      add(top, sum, here, own);
    }
  }
  tops[lane] = top;
  sums[lane] = sum;
  barrier();
  for (uint half_ = WG / 2; half_ > 0; half_ /= 2) {
    if (lane < half_) {
      add(top, sum, tops[lane + half_], sums[lane + half_]);
      tops[lane] = top;
      sums[lane] = sum;
    }
    barrier();
  }
  if (lane != 0) return;
  if (LAST) {
    f32_ref(y).at[0] = norm_of(top, sum, scalars_ref(scalars).gradient_scale);
  } else {
    const uint part = group_index();
    u32_ref(y).at[3 * part] = top;
    f32_ref(y).at[3 * part + 1] = sum.x;
    f32_ref(y).at[3 * part + 2] = sum.y;
  }
}
