#version 460
#extension GL_GOOGLE_include_directive : require
// variant plain:
// variant many: -DBODY
//
// The second half of split-K: an invocation adds the parts of four adjacent sums, in the order of K. Bound by bytes.
#include "access.glsl"
#include "gemm/launch.glsl"
#define BODY_FIRST_ID 19
#include "gemm/epilogue.glsl"

void main() {
  const uint quads = (N + 3) / 4, i = item_index();
  if (i >= batches * M * quads) return;
  const uint row = i / quads, n = i % quads * 4, batch = row / M, m = row % M, valid = min(N - n, 4);
  const uint at = element_index(batch, m, n);
  vec4 sum = vec4(0);
  for (uint p = 0; p < parts; ++p) {
    const uint64_t sums = a + 4 * uint64_t(elements) * p;  // (elements) f32
    if (Y_WHOLE) sum += load4(sums, at / 4, F32);
    else
      [[unroll]] for (uint q = 0; q < 4; ++q)
        if (q < valid) sum[q] += load(sums, at + q, F32);
  }
  finish(batch, m, n, sum, valid);
}
