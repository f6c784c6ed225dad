#version 460
#extension GL_GOOGLE_include_directive : require
// variant plain:
// variant few: -DBODY -DBODY_MICROS=4
// variant many: -DBODY
//
// Bound by flops: fused multiply-adds in f32, whatever the operands' format. 256 invocations compute a tile of 128 x 128, 8 x 8 sums each as four
// blocks of 4 x 4; where tiles are few, a tile has 64 x 64 with one block each. Slabs of 16 along K are in two stages of shared memory (32 KiB), both
// operands K-major; the next slab is in registers while one is multiplied. Each sum adds its terms in the order of K: the same bits in every run.
//
// Where even those tiles are few, the time of a single tile counts: then tiles have 32 x 32 in slabs of 64, and each of four teams of 64 invocations
// multiplies a quarter of a slab. The teams' sums are added in order.
//
// Quads are permuted by xor with 2 (k / 4): the transposing store of 8 lines by 4 quads then touches all 32 banks, and rows need no padding.
#include "access.glsl"
#include "gemm/launch.glsl"

layout(constant_id = 19) const uint TILE = 64;
layout(constant_id = 20) const bool A_WHOLE = false;  // lines of A are whole, aligned quads
layout(constant_id = 21) const bool B_WHOLE = false;
layout(constant_id = 22) const uint STEP = 16;   // how much of a slab is straight code: less compiles faster
layout(constant_id = 23) const uint SLAB = 16;   // along K
layout(constant_id = 24) const uint SIDE = 16;   // invocations of a team along M and along N: 8 or 16
layout(constant_id = 25) const uint TEAMS = 1;
#define BODY_FIRST_ID 26
#include "gemm/epilogue.glsl"

const uint TEAM = SIDE * SIDE;               // invocations
const uint THREADS = TEAM * TEAMS;
const uint BLOCKS = TILE / (4 * SIDE);       // of 4 x 4 sums, along each axis
const uint ROW = TILE / 4;                   // in quads
const uint RUN = SLAB / 4;                   // quads of a line along K
const uint STAGE = SLAB * ROW;               // in quads
const uint MOVES = STAGE / THREADS;          // quads of an operand that an invocation moves
shared vec4 left[2 * STAGE];       // (2, SLAB, TILE)
shared vec4 right[2 * STAGE];      // (2, SLAB, TILE)

vec4 sums[4 * BLOCKS][BLOCKS];     // (4 BLOCKS, 4 BLOCKS)
vec4 next_a[MOVES], next_b[MOVES];

// Returns elements `at` to `at` + 3 of a line; zeros beyond the operand.
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
               : fetch(base, type, whole, stride, origin + e / RUN, k + 4 * (e % RUN), outer, end);
}
// Returns the place of quad e of a slab, or of its first element if the quad lies along K.
uint place_cross(uint e) { return e / ROW * ROW + ((e % ROW) ^ (2 * (e / ROW / 4 % 4))); }
uint place_run(uint e, uint q) { return (4 * (e % RUN) + q) * ROW + ((e / RUN / 4) ^ (2 * (e % RUN % 4))); }

void take(uint64_t at_a, uint64_t at_b, uvec2 origin, uint k, uint end) {
  [[unroll]] for (uint i = 0; i < MOVES; ++i) {
    const uint e = gl_LocalInvocationIndex + i * THREADS;
    next_a[i] = fetch_quad(at_a, A_TYPE, A_CROSS, A_WHOLE, a_line, origin.x, k, end, M, e);
    next_b[i] = fetch_quad(at_b, B_TYPE, B_CROSS, B_WHOLE, b_line, origin.y, k, end, N, e);
  }
}
void put(uint stage) {
  [[unroll]] for (uint i = 0; i < MOVES; ++i) {
    const uint e = gl_LocalInvocationIndex + i * THREADS;
    if (A_CROSS) left[stage * STAGE + place_cross(e)] = next_a[i];
    else
      [[unroll]] for (uint q = 0; q < 4; ++q) left[stage * STAGE + place_run(e, q)][e / RUN % 4] = next_a[i][q];
    if (B_CROSS) right[stage * STAGE + place_cross(e)] = next_b[i];
    else
      [[unroll]] for (uint q = 0; q < 4; ++q) right[stage * STAGE + place_run(e, q)][e / RUN % 4] = next_b[i][q];
  }
}
void multiply(uint stage, uvec2 mine, uint team) {
  const uint share = SLAB / TEAMS, from = TEAMS > 1 ? team * share : 0;  // with one team, addresses are constant
  [[dont_unroll]] for (uint k0 = from; k0 < from + share; k0 += STEP)
    [[unroll]] for (uint k = k0; k < k0 + STEP; ++k) {
      vec4 rows[BLOCKS], cols[BLOCKS];
      [[unroll]] for (uint i = 0; i < BLOCKS; ++i) {
        rows[i] = left[stage * STAGE + k * ROW + ((SIDE * i + mine.x) ^ (2 * (k / 4 % 4)))];
        cols[i] = right[stage * STAGE + k * ROW + ((SIDE * i + mine.y) ^ (2 * (k / 4 % 4)))];
      }
      [[unroll]] for (uint i = 0; i < 4 * BLOCKS; ++i)
        [[unroll]] for (uint j = 0; j < BLOCKS; ++j) sums[i][j] = fma(vec4(rows[i / 4][i % 4]), cols[j], sums[i][j]);
    }
}

// Returns the place of quad e of an invocation; 4 BLOCKS of them fit into both arrays.
void place_sum(uint e, uint t, vec4 x) {
  if (e < 2 * BLOCKS) left[e * THREADS + t] = x;
  else right[(e - 2 * BLOCKS) * THREADS + t] = x;
}
vec4 placed_sum(uint e, uint t) {
  if (e < 2 * BLOCKS) return left[e * THREADS + t];
  return right[(e - 2 * BLOCKS) * THREADS + t];
}

void main() {
  const uint down = (M + TILE - 1) / TILE, across = (N + TILE - 1) / TILE;
  if (group_index() >= down * across) return;
  const uvec2 origin = TILE * tile_at(group_index(), down, across);
  const uint batch = batch_index(), begin = part_index() * depth, end = min(begin + depth, K);
  const uint64_t at_a = a + uint64_t(batch_offset(batch, a_outer, a_inner)) * (A_TYPE == F32 ? 4 : 2);
  const uint64_t at_b = b + uint64_t(batch_offset(batch, b_outer, b_inner)) * (B_TYPE == F32 ? 4 : 2);
  // 32 adjacent invocations have 4 x 8 blocks: they read 16 rows and 32 columns at a time.
  const uint t = gl_LocalInvocationIndex % TEAM, team = gl_LocalInvocationIndex / TEAM, beside = SIDE / 8;
  const uvec2 mine = uvec2(t / 32 / beside * 4 + t % 32 / 8, t / 32 % beside * 8 + t % 8);
  [[unroll]] for (uint i = 0; i < 4 * BLOCKS; ++i)
    [[unroll]] for (uint j = 0; j < BLOCKS; ++j) sums[i][j] = vec4(0);

  // Two slabs per iteration make the stages, and with them addresses in shared memory, constants.
  if (begin < end) {
    take(at_a, at_b, origin, begin, end);
    put(0);
    barrier();
    for (uint k = begin; k < end; k += 2 * SLAB) {
      const bool second = k + SLAB < end, third = k + 2 * SLAB < end;
      if (second) take(at_a, at_b, origin, k + SLAB, end);
      multiply(0, mine, team);
      if (!second) break;
      put(1);
      barrier();
      if (third) take(at_a, at_b, origin, k + 2 * SLAB, end);
      multiply(1, mine, team);
      if (third) put(0);
      barrier();
    }
  }

  // Sums pass through shared memory, so that the epilogue is a loop whose code exists once. Each invocation uses its own places; several teams add
  // their sums one after another.
  barrier();
  [[unroll]] for (uint block = 0; block < BLOCKS; ++block) {
    [[unroll]] for (uint i = 0; i < 4; ++i)
      [[unroll]] for (uint j = 0; j < BLOCKS; ++j) place_sum(i * BLOCKS + j, gl_LocalInvocationIndex, sums[4 * block + i][j]);
    if (TEAMS > 1) barrier();
    [[dont_unroll]] for (uint e = TEAMS > 1 ? team : 0; e < 4 * BLOCKS; e += TEAMS) {
      const uint m = origin.x + (block * SIDE + mine.x) * 4 + e / BLOCKS, n = origin.y + (e % BLOCKS * SIDE + mine.y) * 4;
      if (EDGE && (m >= M || n >= N)) continue;
      vec4 sum = placed_sum(e, t);
      [[unroll]] for (uint other = 1; other < TEAMS; ++other) sum += placed_sum(e, other * TEAM + t);
      finish(batch, m, n, sum, EDGE ? min(N - n, 4) : 4);
    }
  }
}
