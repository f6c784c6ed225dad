#version 460
#extension GL_GOOGLE_include_directive : require
// Attention over cached keys and values by the definition, one query of a head per invocation: the largest score, then the sum, then the mean of the values.
// Bound by flops: scores are computed 2 + D / 32 times.
#include "access.glsl"
#include "math/math.glsl"
#include "math/two_float.glsl"

layout(constant_id = 2) const uint Q = F32;
layout(constant_id = 3) const uint CACHE = F32;
layout(constant_id = 4) const uint D = 64;
layout(constant_id = 5) const uint WINDOW = 0;  // most keys that a query sees; 0: no window

const uint CHUNK = 32;  // columns of a result that an invocation keeps in registers; each chunk recomputes the scores

layout(push_constant, scalar) uniform push {
  uint64_t q;                   // (N, H D)
  uint64_t keys, values;        // (B, G, T, D)
  uint64_t sequence, position;  // (N) i32
  uint64_t y;                   // (N, H D)
  uint q_stride, y_stride;      // of rows, in elements
  uint N, B, H, G, T;
  float scale;
};

float score(uint query, uint key) {
  float sum = 0.0;
  for (uint d = 0; d < D; ++d) sum += load(q, query + d, Q) * load(keys, key + d, CACHE);
  return scale * sum;
}

void main() {
  const uint i = item_index();
  if (i >= N * H) return;
  const uint n = i / H, h = i % H;
  const int slot = load_int(sequence, n), own = load_int(position, n);
  const bool idle = slot < 0 || uint(slot) >= B || own < 0 || uint(own) >= T;
  const uint end = idle ? 0 : uint(own) + 1, least = WINDOW != 0 && end > WINDOW ? end - WINDOW : 0;
  const uint query = n * q_stride + h * D, to = n * y_stride + h * D;
  const uint row = idle ? 0 : (uint(slot) * G + h / (H / G)) * T * D;  // of position 0
  float top = -INFINITY;
  bool nan = false;
  for (uint t = least; t < end; ++t) {
    const float x = score(query, row + t * D);
    if (is_nan(x)) nan = true;
    else if (x > top) top = x;
  }
  const bool defined = !nan && is_finite(top), blind = !nan && floatBitsToUint(top) == 0xff800000u;
  vec2 total = vec2(0.0);
  if (defined)
    for (uint t = least; t < end; ++t) total = plus(total, exp_accurate(score(query, row + t * D) - top));
  const float sum = value_of(total);
  for (uint first = 0; first < D; first += CHUNK) {
    float part[CHUNK];
    [[unroll]] for (uint d = 0; d < CHUNK; ++d) part[d] = 0.0;
    if (defined)
      for (uint t = least; t < end; ++t) {
        const float p = exp_accurate(score(query, row + t * D) - top);
        const uint from = row + t * D + first;
        [[unroll]] for (uint d = 0; d < CHUNK; ++d)
          if (first + d < D) part[d] += p * load(values, from + d, CACHE);
      }
    [[unroll]] for (uint d = 0; d < CHUNK; ++d)
      if (first + d < D) store(y, to + first + d, Q, defined ? part[d] / sum : blind ? 0.0 : NOT_A_NUMBER);
  }
}
