#version 460
#extension GL_GOOGLE_include_directive : require
// Moves bytes unchanged, one written element per invocation: copy, the parts of concat, pad. Bound by bytes.
#include "access.glsl"

layout(constant_id = 2) const uint BYTES = 4;      // of an element
layout(constant_id = 3) const bool PADDED = false;  // zeros where the coordinate on `axis` is not in [first, first + length)

layout(push_constant, scalar) uniform push {
  uint64_t x, y;
  uint count;  // elements written
  uint dims[6], x_strides[6], y_strides[6];
  uint axis, first, length;
};

void main() {
  uint i = item_index();
  if (i >= count) return;
  uint from = 0, to = 0;
  bool inside = true;
  for (uint k = 6; k-- > 0;) {
    uint at = i % dims[k];
    i /= dims[k];
    to += at * y_strides[k];
    if (PADDED && k == axis) {
      inside = at >= first && at - first < length;
      at -= first;
    }
    from += at * x_strides[k];
  }
  if (BYTES == 8) u64_ref(y).at[to] = inside ? u64_ref(x).at[from] : uint64_t(0);
  else if (BYTES == 4) u32_ref(y).at[to] = inside ? u32_ref(x).at[from] : 0u;
  else if (BYTES == 2) u16_ref(y).at[to] = uint16_t(inside ? uint(u16_ref(x).at[from]) : 0u);
  else u8_ref(y).at[to] = uint8_t(inside ? uint(u8_ref(x).at[from]) : 0u);
}
