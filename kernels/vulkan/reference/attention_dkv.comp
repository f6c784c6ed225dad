#version 460
#extension GL_GOOGLE_include_directive : require
// dk = scale dS^T q and dv = P^T dy, one key of a key-value head per invocation. Bound by flops: probabilities are computed D / 32 times.
#include "access.glsl"
#include "math/math.glsl"
#include "attention.glsl"
#include "attention_grad.glsl"

layout(push_constant, scalar) uniform push {
  attention_operands o;
  uint64_t dk, dv;  // (B, T, ...), dense
  uint dk_row;      // of dk and dv
  uint stream;
};

void main() {
  const uint i = item_index();
  if (i >= o.B * G * o.T) return;
  const uint t = i % o.T, g = i / o.T % G, b = i / (o.T * G);
  const uint to = (b * o.T + t) * dk_row + g * D;
  for (uint first = 0; first < D; first += CHUNK) {
    float dk_part[CHUNK], dv_part[CHUNK];
    [[unroll]] for (uint d = 0; d < CHUNK; ++d) dk_part[d] = dv_part[d] = 0.0;
    for (uint h = g * (H / G); h < (g + 1) * (H / G); ++h)
      for (uint s = 0; s < o.S; ++s) {
        if (t >= seen(s, o.S, o.T) || t < first_seen(s, o.S, o.T)) continue;
        const probability x = probability_of(o, stream, b, h, s, t);
        const uint q_from = at(o.q_at, b, s, h) + first, dy_from = at(o.dy_at, b, s, h) + first;
        [[unroll]] for (uint d = 0; d < CHUNK; ++d)
          if (first + d < D) {
            dk_part[d] += x.ds * load(o.q, q_from + d, Q);
            dv_part[d] += x.p * load(o.dy, dy_from + d, DY);
          }
      }
    [[unroll]] for (uint d = 0; d < CHUNK; ++d)
      if (first + d < D) {
        store(dk, to + first + d, K, o.scale * dk_part[d]);
        store(dv, to + first + d, V, dv_part[d]);
      }
  }
}
