#version 460
#extension GL_GOOGLE_include_directive : require
// dq = scale dS k, one query of a head per invocation. Bound by flops: probabilities are computed D / 32 times.
#include "access.glsl"
#include "math/math.glsl"
#include "attention.glsl"
#include "attention_grad.glsl"

layout(push_constant, scalar) uniform push {
  attention_operands o;
  uint64_t dq;  // (B, S, ...), dense
  uint dq_row, stream;
};

void main() {
  const uint i = item_index();
  if (i >= o.B * H * o.S) return;
  const uint s = i % o.S, h = i / o.S % H, b = i / (o.S * H), g = h / (H / G), n = seen(s, o.S, o.T),
             least = first_seen(s, o.S, o.T);
  const uint to = (b * o.S + s) * dq_row + h * D;
  for (uint first = 0; first < D; first += CHUNK) {
    float sums[CHUNK];
    [[unroll]] for (uint d = 0; d < CHUNK; ++d) sums[d] = 0.0;
    for (uint t = least; t < n; ++t) {
      const float ds = probability_of(o, stream, b, h, s, t).ds;
      const uint from = at(o.k_at, b, t, g) + first;
      [[unroll]] for (uint d = 0; d < CHUNK; ++d)
        if (first + d < D) sums[d] += ds * load(o.k, from + d, K);
    }
    [[unroll]] for (uint d = 0; d < CHUNK; ++d)
      if (first + d < D) store(dq, to + first + d, Q, o.scale * sums[d]);
  }
}
