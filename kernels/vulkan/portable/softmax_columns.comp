#version 460
#extension GL_GOOGLE_include_directive : require
// Softmax, its logarithm and their gradients along an axis that is not the last: one column per invocation, adjacent invocations on adjacent columns.
// Bound by bytes: two reads of each operand, one write.
#include "access.glsl"
#include "math/math.glsl"

layout(constant_id = 2) const uint X = F32;
layout(constant_id = 3) const bool LOGS = false;
layout(constant_id = 4) const bool GRADIENT = false;

layout(push_constant, scalar) uniform push {
  uint64_t x, dy, y;  // (outer, n, inner); GRADIENT: x is the result of softmax, y the gradient
  uint cols, n, inner;  // cols = outer inner
};

void main() {
  const uint col = item_index();
  if (col >= cols) return;
  const uint begin = col / inner * n * inner + col % inner, end = begin + n * inner;
  float top = -3.40282347e38, total = 0.0;
  for (uint i = begin; i < end; i += inner) {
    if (GRADIENT) {
      total += LOGS ? load(dy, i, X) : load(x, i, X) * load(dy, i, X);
    } else {
      const float v = load(x, i, X), most = max(top, v);
      total = total * exp_accurate(top - most) + exp_accurate(v - most);
      top = most;
    }
  }
  const float rest = LOGS ? log_accurate(total) : total == 0.0 ? NOT_A_NUMBER : 1.0 / total;
  for (uint i = begin; i < end; i += inner) {
    const float v = load(x, i, X);
    float r;
    if (GRADIENT) r = LOGS ? load(dy, i, X) - exp_accurate(v) * total : v * (load(dy, i, X) - total);
    else r = LOGS ? (v - top) - rest : exp_accurate(v - top) * rest;
    store(y, i, X, r);
  }
}
