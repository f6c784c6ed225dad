#version 460
#extension GL_GOOGLE_include_directive : require
// Copies rows of keys and values to their places in the caches, an element of a row of both per invocation. A row that a later one has the place of is left
// out. Bound by reading the places, N^2 G D / 2 times.
#include "access.glsl"

layout(constant_id = 2) const uint TYPE = F32;

layout(push_constant, scalar) uniform push {
  uint64_t keys, values;        // (B, G, T, D)
  uint64_t k, v;                // (N, G D)
  uint64_t sequence, position;  // (N) i32
  uint k_stride, v_stride;      // of rows, in elements
  uint N, B, G, T, D;
};

void main() {
  const uint i = item_index(), width = G * D;
  if (i >= N * width) return;
  const uint n = i / width, c = i % width;
  const int slot = load_int(sequence, n), t = load_int(position, n);
  if (slot < 0 || uint(slot) >= B || t < 0 || uint(t) >= T) return;
  for (uint later = n + 1; later < N; ++later)
    if (load_int(sequence, later) == slot && load_int(position, later) == t) return;
  const uint to = ((uint(slot) * G + c / D) * T + uint(t)) * D + c % D;
  store(keys, to, TYPE, load(k, n * k_stride + c, TYPE));
  store(values, to, TYPE, load(v, n * v_stride + c, TYPE));
}
