#version 460
#extension GL_GOOGLE_include_directive : require
// Attention by the definition, one query of a head per invocation: the largest score, then the sum, then the mean of the values. Bound by flops:
// scores are computed 2 + D / 32 times.
#include "access.glsl"
#include "math/math.glsl"
#include "math/two_float.glsl"
#include "attention.glsl"

layout(push_constant, scalar) uniform push {
  uint64_t q, k, v, mask;  // (B, S, H D), (B, T, G D), (B, T, G D), (B, T)
  uint64_t y, lse;         // (B, S, H D), (B, H, S) f32
  uint64_t scalars;
  rows q_at, k_at, v_at, y_at, lse_at;
  uint B, S, T;
  float scale;
  uint stream;
};

float score(uint b, uint h, uint s, uint t) {
  const float x = scale * dot_of(q, at(q_at, b, s, h), Q, k, at(k_at, b, t, h / (H / G)), K);
  return MASKED ? x + load(mask, b * MASK_BATCH + t, MASK) : x;
}

void main() {
  const uint i = item_index();
  if (i >= B * H * S) return;
  const uint s = i % S, h = i / S % H, b = i / (S * H), n = seen(s, S, T), least = first_seen(s, S, T);
  float top = -INFINITY;
  bool nan = false;
  for (uint t = least; t < n; ++t) {
    const float x = score(b, h, s, t);
    if (is_nan(x)) nan = true;
    else if (x > top) top = x;
  }
  const bool defined = !nan && is_finite(top), blind = !nan && floatBitsToUint(top) == 0xff800000u;
  vec2 total = vec2(0.0);
  if (defined)
    for (uint t = least; t < n; ++t) total = plus(total, exp_accurate(score(b, h, s, t) - top));
  const float sum = value_of(total);
  f32_ref(lse).at[b * lse_at.batch + h * lse_at.row + s] = defined ? top + log_accurate(sum) : blind ? top : NOT_A_NUMBER;

  const uint to = at(y_at, b, s, h);
  for (uint first = 0; first < D; first += CHUNK) {
    float y_part[CHUNK];
    [[unroll]] for (uint d = 0; d < CHUNK; ++d) y_part[d] = 0.0;
    if (defined)
      for (uint t = least; t < n; ++t) {
        float p = exp_accurate(score(b, h, s, t) - top);
        if (DROPPED) {
          const float share = share_of(scalars, stream, i, t);
          p = share == 0.0 ? 0.0 : p * share;
        }
        const uint from = at(v_at, b, t, h / (H / G)) + first;
        [[unroll]] for (uint d = 0; d < CHUNK; ++d)
          if (first + d < D) y_part[d] += p * load(v, from + d, V);
      }
    [[unroll]] for (uint d = 0; d < CHUNK; ++d)
      if (first + d < D) store(y, to + first + d, Q, defined ? y_part[d] / sum : blind ? 0.0 : NOT_A_NUMBER);
  }
}
