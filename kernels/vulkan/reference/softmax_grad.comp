#version 460
#extension GL_GOOGLE_include_directive : require
// Gradients of softmax and its logarithm from their results, one row per invocation. Each element is read before it is written, so dx may overwrite y
// or dy. Bound by bytes.
#include "access.glsl"
#include "math/math.glsl"
#include "math/two_float.glsl"

layout(constant_id = 2) const uint Y = F32;
layout(constant_id = 3) const uint DY = F32;
layout(constant_id = 4) const uint DX = F32;
layout(constant_id = 5) const bool LOG = false;

layout(push_constant, scalar) uniform push {
  uint64_t y, dy, dx;    // (rows / inner, n, inner)
  uint rows, n, inner;
};

void main() {
  const uint row = item_index();
  if (row >= rows) return;
  const uint from = row / inner * n * inner + row % inner;
  vec2 sum = vec2(0.0);
  for (uint first = 0; first < n; first += 4)  // four per iteration, as in logits.glsl
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      if (first + j < n) {
        const uint at = from + (first + j) * inner;
        const float d = load(dy, at, DY);
        sum = LOG ? plus(sum, d) : plus(sum, load(y, at, Y) * d);
      }
    }
  const float total = value_of(sum);
  for (uint first = 0; first < n; first += 4)
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      if (first + j < n) {
        const uint at = from + (first + j) * inner;
        const float p = load(y, at, Y), d = load(dy, at, DY);
        store(dx, at, DX, LOG ? d - exp_accurate(p) * total : p * (d - total));
      }
    }
}
