#version 460
#extension GL_GOOGLE_include_directive : require
// Softmax and its logarithm along one axis, one row per invocation; a row is read before it is written, so in place is safe. Bound by bytes.
#include "access.glsl"
#include "math/math.glsl"
#include "math/two_float.glsl"
#include "logits.glsl"

layout(constant_id = 2) const uint X = F32;
layout(constant_id = 3) const uint Y = F32;
layout(constant_id = 4) const bool LOG = false;

layout(push_constant, scalar) uniform push {
  uint64_t x, y;         // (rows / inner, n, inner)
  uint rows, n, inner;
};

void main() {
  const uint row = item_index();
  if (row >= rows) return;
  const uint from = row / inner * n * inner + row % inner;
  const denominator d = denominator_of(x, from, inner, n, X);
  for (uint first = 0; first < n; first += 4)  // as in logits.glsl
    [[unroll]] for (uint j = 0; j < 4; ++j) {
      if (first + j < n) {
        const uint at = from + (first + j) * inner;
        const float v = load(x, at, X);
        float result = NOT_A_NUMBER;
        if (d.defined) result = LOG ? v - d.top - d.log_total : weight(v, d.top) / d.total;
        store(y, at, Y, result);
      }
    }
}
