#version 460
#extension GL_GOOGLE_include_directive : require
// Running sums along an axis that is not the last, compensated: one column per invocation, adjacent invocations on adjacent columns. Bound by bytes.
#include "access.glsl"
#include "math/two_float.glsl"

layout(constant_id = 2) const uint X = F32;
layout(constant_id = 3) const bool REVERSE = false;

layout(push_constant, scalar) uniform push {
  uint64_t x, y;        // (outer, n, inner)
  uint cols, n, inner;  // cols = outer inner
};

void main() {
  const uint col = item_index();
  if (col >= cols) return;
  const uint begin = col / inner * n * inner + col % inner;
  vec2 sum = vec2(0.0);
  for (uint k = 0; k < n; ++k) {
    const uint i = begin + (REVERSE ? n - 1 - k : k) * inner;
    sum = plus(sum, load(x, i, X));
    store(y, i, X, value_of(sum));
  }
}
