#version 460
#extension GL_GOOGLE_include_directive : require
// Rotary position embedding, one pair of elements per invocation; both are read before either is written. Bound by bytes.
#include "access.glsl"

layout(constant_id = 2) const uint X = F32;
layout(constant_id = 3) const uint Y = F32;

layout(push_constant, scalar) uniform push {
  uint64_t x, y;   // (B, S, H, 2, pairs)
  uint64_t table;  // (S, pairs, 2) f32: cosines and sines
  uint count;      // pairs in all
  uint S, H, pairs;
};

void main() {
  const uint i = item_index();
  if (i >= count) return;
  const uint d = i % pairs, head = i / pairs, s = head / H % S;
  const float cosine = f32_ref(table).at[2 * (s * pairs + d)], sine = f32_ref(table).at[2 * (s * pairs + d) + 1];
  const uint at = head * 2 * pairs + d;
  const float a = load(x, at, X), b = load(x, at + pairs, X);
  store(y, at, Y, a * cosine - b * sine);
  store(y, at + pairs, Y, b * cosine + a * sine);
}
