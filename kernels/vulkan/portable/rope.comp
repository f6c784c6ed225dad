#version 460
#extension GL_GOOGLE_include_directive : require
// Rotary position embedding, four pairs per invocation; both halves are read before either is written. Bound by bytes.
#include "access.glsl"

layout(constant_id = 2) const uint X = F32;  // format of x and y

layout(push_constant, scalar) uniform push {
  uint64_t x, y;   // (B, S, H, 2, pairs)
  uint64_t table;  // (S, pairs, 2) f32: cosines and sines
  uint count;      // blocks of four pairs in all
  uint S, H, blocks;  // blocks: of one head
};

void main() {
  const uint i = item_index();
  if (i >= count) return;
  const uint d = i % blocks, head = i / blocks, s = head / H % S, at = head * 2 * blocks + d, t = 2 * (s * blocks + d);
  const vec4 low = load4(table, t, F32), high = load4(table, t + 1, F32), cosine = vec4(low.xz, high.xz), sine = vec4(low.yw, high.yw);
  const vec4 a = load4(x, at, X), b = load4(x, at + blocks, X);
  store4(y, at, X, a * cosine - b * sine);
  store4(y, at + blocks, X, b * cosine + a * sine);
}
