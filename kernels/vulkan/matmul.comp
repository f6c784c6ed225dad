#version 460
#extension GL_GOOGLE_include_directive : require
// variant plain:
// variant few: -DBODY -DBODY_MICROS=4
// variant many: -DBODY
//
// Bound by flops: fused multiply-adds in f32, whatever the operands' format. A tile of 128 x 128 by 256 invocations, 8 x 8 sums each as four
// blocks of 4 x 4; 64 x 64 with one block where tiles are few. Slabs of 16 along K in two stages of shared memory (32 KiB), both operands K-major;
// the next slab is in registers while one is multiplied. Each sum adds its products in the order of K: the same bits every run.
//
// Quads are exchanged by xor with 2 (k / 4): the transposing store of 8 lines by 4 quads then touches all 32 banks, and rows need no padding.
#include "access.glsl"
#include "matmul_launch.glsl"

layout(constant_id = 19) const uint TILE = 64;
layout(constant_id = 20) const bool A_WHOLE = false;  // lines of A are whole, aligned quads
layout(constant_id = 21) const bool B_WHOLE = false;
layout(constant_id = 22) const uint STEP = 16;  // of a slab, in straight code: less compiles faster
#define BODY_FIRST_ID 23
#include "matmul_result.glsl"

const uint SLAB = 16;              // of K
const uint THREADS = 256;          // 16 x 16
const uint BLOCKS = TILE / 64;     // of 4 x 4 sums, on each axis; also quads of an operand that an invocation moves
const uint ROW = TILE / 4;         // quads
const uint STAGE = SLAB * ROW;     // quads
shared vec4 left[2 * STAGE];       // (2, SLAB, TILE)
shared vec4 right[2 * STAGE];      // (2, SLAB, TILE)

vec4 sums[4 * BLOCKS][BLOCKS];     // (4 BLOCKS, 4 BLOCKS)
vec4 next_a[BLOCKS], next_b[BLOCKS];

// Elements `at` to `at` + 3 of a line; zeros beyond the operand.
vec4 fetch(uint64_t base, uint type, bool whole, uint stride, uint line, uint at, uint lines, uint length) {
  const uint i = line * stride + at;
  if (!EDGE || (whole && line < lines && at < length)) return load4(base, i / 4, type);
  vec4 x = vec4(0);
  if (!whole && line < lines)
    [[unroll]] for (uint q = 0; q < 4; ++q)
      if (at + q < length) x[q] = load(base, i + q, type);
  return x;
}
vec4 fetch_quad(uint64_t base, uint type, bool cross, bool whole, uint stride, uint origin, uint k, uint end, uint outer, uint e) {
  return cross ? fetch(base, type, whole, stride, k + e / ROW, origin + 4 * (e % ROW), end, outer)
               : fetch(base, type, whole, stride, origin + e / 4, k + 4 * (e % 4), outer, end);
}
// The place of quad e of a slab, or of its first element where the quad lies along K.
uint place_cross(uint e) { return e / ROW * ROW + ((e % ROW) ^ (2 * (e / ROW / 4))); }
uint place_run(uint e, uint q) { return (4 * (e % 4) + q) * ROW + ((e / 16) ^ (2 * (e % 4))); }

void take(uint64_t at_a, uint64_t at_b, uvec2 origin, uint k, uint end) {
  [[unroll]] for (uint i = 0; i < BLOCKS; ++i) {
    const uint e = gl_LocalInvocationIndex + i * THREADS;
    next_a[i] = fetch_quad(at_a, A_TYPE, A_CROSS, A_WHOLE, a_line, origin.x, k, end, M, e);
    next_b[i] = fetch_quad(at_b, B_TYPE, B_CROSS, B_WHOLE, b_line, origin.y, k, end, N, e);
  }
}
void put(uint stage) {
  [[unroll]] for (uint i = 0; i < BLOCKS; ++i) {
    const uint e = gl_LocalInvocationIndex + i * THREADS;
    if (A_CROSS) left[stage * STAGE + place_cross(e)] = next_a[i];
    else
      [[unroll]] for (uint q = 0; q < 4; ++q) left[stage * STAGE + place_run(e, q)][e / 4 % 4] = next_a[i][q];
    if (B_CROSS) right[stage * STAGE + place_cross(e)] = next_b[i];
    else
      [[unroll]] for (uint q = 0; q < 4; ++q) right[stage * STAGE + place_run(e, q)][e / 4 % 4] = next_b[i][q];
  }
}
void multiply(uint stage, uvec2 mine) {
  [[dont_unroll]] for (uint k0 = 0; k0 < SLAB; k0 += STEP)
    [[unroll]] for (uint k = k0; k < k0 + STEP; ++k) {
      vec4 rows[BLOCKS], cols[BLOCKS];
      [[unroll]] for (uint i = 0; i < BLOCKS; ++i) {
        rows[i] = left[stage * STAGE + k * ROW + ((16 * i + mine.x) ^ (2 * (k / 4)))];
        cols[i] = right[stage * STAGE + k * ROW + ((16 * i + mine.y) ^ (2 * (k / 4)))];
      }
      [[unroll]] for (uint i = 0; i < 4 * BLOCKS; ++i)
        [[unroll]] for (uint j = 0; j < BLOCKS; ++j) sums[i][j] = fma(vec4(rows[i / 4][i % 4]), cols[j], sums[i][j]);
    }
}

// Quad e of this invocation: 4 BLOCKS of them fill both arrays.
void place_sum(uint e, vec4 x) {
  if (e < 2 * BLOCKS) left[e * THREADS + gl_LocalInvocationIndex] = x;
  else right[(e - 2 * BLOCKS) * THREADS + gl_LocalInvocationIndex] = x;
}
vec4 placed_sum(uint e) {
  if (e < 2 * BLOCKS) return left[e * THREADS + gl_LocalInvocationIndex];
  return right[(e - 2 * BLOCKS) * THREADS + gl_LocalInvocationIndex];
}

void main() {
  const uint down = (M + TILE - 1) / TILE, across = (N + TILE - 1) / TILE;
  if (group_index() >= down * across) return;
  const uvec2 origin = TILE * tile_at(group_index(), down, across);
  const uint batch = batch_index(), begin = part_index() * depth, end = min(begin + depth, K);
  const uint64_t at_a = a + uint64_t(batch_offset(batch, a_outer, a_inner)) * (A_TYPE == F32 ? 4 : 2);
  const uint64_t at_b = b + uint64_t(batch_offset(batch, b_outer, b_inner)) * (B_TYPE == F32 ? 4 : 2);
  // 32 neighbours hold 4 x 8 blocks: what they read at a time is 16 rows and 32 columns.
  const uint t = gl_LocalInvocationIndex, team = t / 32;
  const uvec2 mine = uvec2(team / 2 * 4 + t % 32 / 8, team % 2 * 8 + t % 8);
  [[unroll]] for (uint i = 0; i < 4 * BLOCKS; ++i)
    [[unroll]] for (uint j = 0; j < BLOCKS; ++j) sums[i][j] = vec4(0);

  // Two slabs a turn: stages are constants, so that addresses in shared memory are, too.
  if (begin < end) {
    take(at_a, at_b, origin, begin, end);
    put(0);
    barrier();
    for (uint k = begin; k < end; k += 2 * SLAB) {
      const bool second = k + SLAB < end, third = k + 2 * SLAB < end;
      if (second) take(at_a, at_b, origin, k + SLAB, end);
      multiply(0, mine);
      if (!second) break;
      put(1);
      barrier();
      if (third) take(at_a, at_b, origin, k + 2 * SLAB, end);
      multiply(1, mine);
      if (third) put(0);
      barrier();
    }
  }

  // Sums pass through shared memory, each invocation's in its own places, so that what becomes of them is a loop and its code stands once.
  [[unroll]] for (uint half_of = 0; half_of < BLOCKS; ++half_of) {
    barrier();
    [[unroll]] for (uint i = 0; i < 4; ++i)
      [[unroll]] for (uint j = 0; j < BLOCKS; ++j) place_sum(i * BLOCKS + j, sums[4 * half_of + i][j]);
    [[dont_unroll]] for (uint e = 0; e < 4 * BLOCKS; ++e) {
      const uint m = origin.x + half_of * 64 + mine.x * 4 + e / BLOCKS, n = origin.y + e % BLOCKS * 64 + mine.y * 4;
      if (EDGE && (m >= M || n >= N)) continue;
      finish(batch, m, n, placed_sum(e), EDGE ? min(N - n, 4) : 4);
    }
  }
}
