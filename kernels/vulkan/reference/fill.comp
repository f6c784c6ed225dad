#version 460
#extension GL_GOOGLE_include_directive : require
// Fills a tensor with one number, whose bits the host makes; one element per invocation. Bound by bytes.
#include "access.glsl"

layout(constant_id = 2) const uint BYTES = 4;  // of an element

layout(push_constant, scalar) uniform push {
  uint64_t y, bits;
  uint count;
};

void main() {
  const uint i = item_index();
  if (i >= count) return;
  if (BYTES == 8) u64_ref(y).at[i] = bits;
  else if (BYTES == 4) u32_ref(y).at[i] = uint(bits);
  else if (BYTES == 2) u16_ref(y).at[i] = uint16_t(bits);
  else u8_ref(y).at[i] = uint8_t(bits);
}
