#version 460
#extension GL_GOOGLE_include_directive : require
// Adds the parts of attention_cached.comp in ascending order of keys, an element of a result per invocation.
#include "access.glsl"
#include "math/exponential.glsl"
#include "attention/cached.glsl"

void main() {
  const uint i = item_index();
  if (i >= N * H * D) return;
  const uint query = i / D, d = i % D, n = query / H, h = query % H;
  const key_range seen = keys_of(n);
  const uint begin = seen.first / PART, end = (seen.end + PART - 1) / PART;  // the parts with keys
  float most = NO_SCORE;
  for (uint p = begin; p < end; ++p) {
    const float top = f32_ref(totals).at[2 * (query * PARTS + p)];
    most = top > most ? top : most;
  }
  float total = 0.0, sum = 0.0;
  for (uint p = begin; p < end; ++p) {
    const uint at = query * PARTS + p;
    const float w = exponential(f32_ref(totals).at[2 * at] - most, F32);
    total = fma(w, f32_ref(totals).at[2 * at + 1], total);
    sum = fma(w, f32_ref(sums).at[at * D + d], sum);
  }
  const bool blind = floatBitsToUint(total) == 0u, defined = floatBitsToUint(most) != 0x7f800000u;
  store(y, n * y_stride + h * D + d, Q_TYPE, !defined ? NOT_A_NUMBER : blind ? 0.0 : sum / total);
}
