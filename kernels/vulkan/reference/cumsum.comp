#version 460
#extension GL_GOOGLE_include_directive : require
// Running sums along one axis, compensated: one row per invocation. An element is read before its place is written, so in place is safe.
#include "access.glsl"
#include "math/two_float.glsl"

layout(constant_id = 2) const uint X = F32;
layout(constant_id = 3) const uint Y = F32;
layout(constant_id = 4) const bool REVERSE = false;

layout(push_constant, scalar) uniform push {
  uint64_t x, y;  // (rows / inner, n, inner)
  uint rows, n, inner;
};

void main() {
  const uint row = item_index();
  if (row >= rows) return;
  const uint from = row / inner * n * inner + row % inner;
  vec2 sum = vec2(0.0);
  for (uint first = 0; first < n; first += 4)  // as in logits.glsl
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      const uint k = first + j;
      if (k < n) {
        const uint at = from + (REVERSE ? n - 1 - k : k) * inner;
        sum = plus(sum, load(x, at, X));
        store(y, at, Y, value_of(sum));
      }
    }
}
