#version 460
#extension GL_GOOGLE_include_directive : require
// Copies rows of keys and values to their places in the caches, a row of both per workgroup. A row that a later one has the place of is left out: the
// invocations of its workgroup look for that together. Bound by bytes.
#include "access.glsl"

layout(constant_id = 2) const uint UNIT = 16;  // bytes of an access: 16, 8, 4 or 2

layout(push_constant, scalar) uniform push {
  uint64_t keys, values;        // (B, G, T, D)
  uint64_t k, v;                // (N, G D)
  uint64_t sequence, position;  // (N) i32
  uint k_stride, v_stride;      // of rows, in units
  uint N, B, G, T, D;           // D in units
};

shared uint replaced;

void copy(uint64_t from, uint i, uint64_t to, uint j) {
  if (UNIT == 16) u32x4_ref(to).at[j] = u32x4_ref(from).at[i];
  else if (UNIT == 8) u32x2_ref(to).at[j] = u32x2_ref(from).at[i];
  else if (UNIT == 4) u32_ref(to).at[j] = u32_ref(from).at[i];
  else u16_ref(to).at[j] = u16_ref(from).at[i];
}

void main() {
  const uint n = group_index();
  if (n >= N) return;
  const int slot = load_int(sequence, n), t = load_int(position, n);
  if (slot < 0 || uint(slot) >= B || t < 0 || uint(t) >= T) return;
  if (n + 1 < N) {
    if (gl_LocalInvocationID.x == 0) replaced = 0;
    barrier();
    bool found = false;
    for (uint later = n + 1 + gl_LocalInvocationID.x; later < N; later += WG)
      found = found || (load_int(sequence, later) == slot && load_int(position, later) == t);
    if (found) atomicOr(replaced, 1u);
    barrier();
    if (replaced != 0) return;
  }
  for (uint c = gl_LocalInvocationID.x; c < G * D; c += WG) {
    const uint to = ((uint(slot) * G + c / D) * T + uint(t)) * D + c % D;
    copy(k, n * k_stride + c, keys, to);
    copy(v, n * v_stride + c, values, to);
  }
}
