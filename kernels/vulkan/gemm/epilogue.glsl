// The epilogue of finished sums: stores partial sums for matmul_reduce.comp, or applies alpha and c, rounds, and stores y or runs the fused body.
// Included after the kernel's own constants, which BODY_FIRST_ID counts; without BODY there is no fused body, and half the code.
#ifdef BODY
#include "body/body.glsl"
#endif

uint element_index(uint batch, uint m, uint n) { return ((before + batch) * M + m) * N + n; }

vec4 scaled_sum(uint batch, uint m, uint n, vec4 sum, uint valid) {
  precise vec4 x = ALPHA * sum;  // not contracted with what follows: a fused body gives the bits of separate ops
  if (BETA != 0.0) {
    const uint at = batch_offset(batch, C_OUTER, C_INNER) + m * C_ROW + n * C_COL;
    [[unroll]] for (uint q = 0; q < 4; ++q)
      if (q < valid) x[q] += BETA * load(c, at + q * C_COL, C_TYPE);
  }
  return vec4(rounded(x.x, GEMM_TYPE), rounded(x.y, GEMM_TYPE), rounded(x.z, GEMM_TYPE), rounded(x.w, GEMM_TYPE));
}

// Finishes the sums of row m, columns n to n + 3, of which the first `valid` exist. Where rows are whole quads, n is a multiple of 4 and all exist.
void finish(uint batch, uint m, uint n, vec4 sum, uint valid) {
  const uint at = element_index(batch, m, n);
  if (PARTIAL) {
    const uint64_t sums = y + 4 * uint64_t(elements) * part_index();
    if (Y_WHOLE) store4(sums, at / 4, F32, sum);
    else
      [[unroll]] for (uint q = 0; q < 4; ++q)
        if (q < valid) store(sums, at + q, F32, sum[q]);
    return;
  }
  const vec4 x = scaled_sum(batch, m, n, sum, valid);
#ifdef BODY
  if (BODY_WIDE && Y_WHOLE) {
    body_run4(body, at, x);
  } else {
    [[dont_unroll]] for (uint q = 0; q < valid; ++q) body_run(body, at + q, x[q]);
  }
#else
  if (Y_WHOLE) {
    store4(y, at / 4, Y_TYPE, ACCUMULATE ? load4(y, at / 4, Y_TYPE) + x : x);
  } else {
    [[unroll]] for (uint q = 0; q < 4; ++q)
      if (q < valid) store(y, at + q, Y_TYPE, ACCUMULATE ? load(y, at + q, Y_TYPE) + x[q] : x[q]);
  }
#endif
}

// The operands of the fused body for one element, read before its sum is there.
struct element_operands {
  float x[8];
};
element_operands operands_of(uint batch, uint m, uint n) {
  element_operands r;
#ifdef BODY
  body_fetch(body, element_index(batch, m, n), r.x);
#endif
  return r;
}
// Finishes the sum of one element.
void finish_element(uint batch, uint m, uint n, element_operands from, float sum) {
  const uint at = element_index(batch, m, n);
  const float x = scaled_sum(batch, m, n, vec4(sum, 0.0, 0.0, 0.0), 1u).x;
#ifdef BODY
  body_finish(body, at, from.x, x);
#else
  store(y, at, Y_TYPE, ACCUMULATE ? load(y, at, Y_TYPE) + x : x);
#endif
}
