#version 460
#extension GL_GOOGLE_include_directive : require
// Sums of squares that neither overflow nor lose bits: an invocation has one part and takes every `parts`-th term. A part is the bits of its largest
// magnitude and a two-float sum of squares in units of that magnitude's power of two. The same shader adds the parts. Bound by bytes.
#include "access.glsl"
#include "squares.glsl"

layout(constant_id = 2) const uint X = F32;  // format of the terms
layout(constant_id = 3) const bool PARTS = false;  // the terms are parts

layout(push_constant, scalar) uniform push {
  uint64_t x;  // (terms)
  uint64_t y;  // (parts): three words
  uint terms, parts;
};

void main() {
  const uint part = item_index();
  if (part >= parts) return;
  uint top = 0;
  for (uint t = part; t < terms; t += parts) top = max(top, PARTS ? u32_ref(x).at[3 * t] : floatBitsToUint(load(x, t, X)) & 0x7fffffffu);
  const uint unit = unit_of(top);
  vec2 sum = vec2(0.0);
  for (uint t = part; t < terms; t += parts) {
    if (PARTS) {
      const uint more = unit_of(u32_ref(x).at[3 * t]) - unit;  // binary digits; a part this far below adds nothing that is kept
      if (more > 60) continue;
      const float factor = uintBitsToFloat((127 - 2 * more) << 23);
      sum = plus(sum, vec2(f32_ref(x).at[3 * t + 1] * factor, f32_ref(x).at[3 * t + 2] * factor));
    } else {
      const float scaled = load(x, t, X) * uintBitsToFloat(unit << 23);
      sum = plus(sum, product(scaled, scaled));
    }
  }
  u32_ref(y).at[3 * part] = top;
  f32_ref(y).at[3 * part + 1] = sum.x;
  f32_ref(y).at[3 * part + 2] = sum.y;
}
