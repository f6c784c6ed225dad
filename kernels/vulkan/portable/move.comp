#version 460
#extension GL_GOOGLE_include_directive : require
// y[i] = x[i] for every index i, or (FILL) one pattern, for any strides: an invocation moves one unit of bytes, as large as sizes, strides and
// addresses allow. Bound by bytes.
#include "access.glsl"

layout(constant_id = 2) const uint UNIT = 16;  // bytes: 16, 8, 4, 2 or 1
layout(constant_id = 3) const uint RANK = 1;
layout(constant_id = 4) const bool FILL = false;

layout(push_constant, scalar) uniform push {
  uint64_t x, y;
  uint64_t bits;  // the pattern, repeated to eight bytes
  uint count;     // in units
  uint dims[6], x_strides[6], y_strides[6];  // in units, outermost first
};

void main() {
  uint i = item_index();
  if (i >= count) return;
  uint from = 0, to = 0;
  [[unroll]] for (uint k = RANK; k > 0; --k) {
    const uint rest = k > 1 ? i / dims[k - 1] : 0, at = i - rest * dims[k - 1];
    from += at * x_strides[k - 1];
    to += at * y_strides[k - 1];
    i = rest;
  }
  const uvec2 pattern = uvec2(uint(bits), uint(bits >> 32));
  if (UNIT == 16) u32x4_ref(y).at[to] = FILL ? pattern.xyxy : u32x4_ref(x).at[from];
  else if (UNIT == 8) u32x2_ref(y).at[to] = FILL ? pattern : u32x2_ref(x).at[from];
  else if (UNIT == 4) u32_ref(y).at[to] = FILL ? pattern.x : u32_ref(x).at[from];
  else if (UNIT == 2) u16_ref(y).at[to] = uint16_t(FILL ? pattern.x : uint(u16_ref(x).at[from]));
  else u8_ref(y).at[to] = uint8_t(FILL ? pattern.x : uint(u8_ref(x).at[from]));
}
