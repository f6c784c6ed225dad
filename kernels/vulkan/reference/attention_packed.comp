#version 460
#extension GL_GOOGLE_include_directive : require
// Attention of packed sequences by the definition, one query of a head per invocation: the largest score, then the sum, then the mean of the values. Bound by
// flops: scores are computed 2 + D / 32 times.
#include "access.glsl"
#include "math/math.glsl"
#include "math/two_float.glsl"
#include "rows/packed_rows.glsl"

layout(constant_id = 2) const uint TYPE = F32;
layout(constant_id = 3) const uint D = 64;
layout(constant_id = 4) const bool CAUSAL = false;

const uint CHUNK = 32;  // columns of a result that an invocation keeps in registers; each chunk recomputes the scores

layout(push_constant, scalar) uniform push {
  uint64_t q, k, v;                            // (N, H D)
  uint64_t starts;                             // (B + 1) i32
  uint64_t y;                                  // (N, H D)
  uint q_stride, k_stride, v_stride, y_stride;  // of rows, in elements
  uint N, B, H;
  float scale;
};

float score(uint query, uint key) {
  float sum = 0.0;
  for (uint d = 0; d < D; ++d) sum += load(q, query + d, TYPE) * load(k, key + d, TYPE);
  return scale * sum;
}

void main() {
  const uint i = item_index();
  if (i >= N * H) return;
  const uint n = i / H, head = i % H * D, sequence = sequences_up_to(starts, B, N, n);
  const uint least = sequence == 0 ? 0 : start_of(starts, sequence - 1, N);
  uint end = sequence == 0 ? 0 : start_of(starts, sequence, N);
  if (n >= end) end = least;  // a row behind the last sequence
  else if (CAUSAL) end = n + 1;
  const uint query = n * q_stride + head, to = n * y_stride + head;
  float top = -INFINITY;
  bool nan = false;
  for (uint t = least; t < end; ++t) {
    const float x = score(query, t * k_stride + head);
    if (is_nan(x)) nan = true;
    else if (x > top) top = x;
  }
  const bool defined = !nan && is_finite(top), blind = !nan && floatBitsToUint(top) == 0xff800000u;
  vec2 total = vec2(0.0);
  if (defined)
    for (uint t = least; t < end; ++t) total = plus(total, exp_accurate(score(query, t * k_stride + head) - top));
  const float sum = value_of(total);
  for (uint first = 0; first < D; first += CHUNK) {
    float part[CHUNK];
    [[unroll]] for (uint d = 0; d < CHUNK; ++d) part[d] = 0.0;
    if (defined)
      for (uint t = least; t < end; ++t) {
        const float p = exp_accurate(score(query, t * k_stride + head) - top);
        const uint from = t * v_stride + head + first;
        [[unroll]] for (uint d = 0; d < CHUNK; ++d)
          if (first + d < D) part[d] += p * load(v, from + d, TYPE);
      }
    [[unroll]] for (uint d = 0; d < CHUNK; ++d)
      if (first + d < D) store(y, to + first + d, TYPE, defined ? part[d] / sum : blind ? 0.0 : NOT_A_NUMBER);
  }
}
