#version 460
#extension GL_GOOGLE_include_directive : require
// variant plain:
// variant few: -DBODY -DBODY_MICROS=4
// variant many: -DBODY
//
// A gemv for at most 8 rows, as in decoding: bound by the bytes of B, which are read once. Where B's lines run along K, a subgroup has COLS columns:
// its lanes read adjacent quads of a line, and their sums are added across lanes. Where they run along N, a lane has four columns and the subgroups
// of a workgroup interleave along K; shared memory adds their sums. The order of additions depends only on the shape and the subgroup size.
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "access.glsl"
#include "gemm/launch.glsl"

layout(constant_id = 19) const uint ROWS = 1;  // M
layout(constant_id = 20) const uint COLS = 4;  // columns of a subgroup, where B's lines run along K: more for more rows, whose A is read again for each
layout(constant_id = 21) const bool A_WHOLE = false;
layout(constant_id = 22) const bool B_WHOLE = false;
#define BODY_FIRST_ID 23
#include "gemm/epilogue.glsl"

const uint TEAMS = WG / SUBGROUP;
const uint DEEP = 4 / COLS;         // quads of a line that a lane reads ahead
const uint PLACES = ROWS > SUBGROUP ? ROWS : SUBGROUP;
shared vec4 team_sums[TEAMS * PLACES];

// Returns elements k to k + 3 of row m of A.
vec4 fetch_a(uint64_t base, uint m, uint k) {
  if (A_WHOLE) return load4(base, (m * a_line + k) / 4, A_TYPE);
  vec4 x = vec4(0);
  [[unroll]] for (uint q = 0; q < 4; ++q)
    if (k + q < K) x[q] = load(base, A_CROSS ? (k + q) * a_line + m : m * a_line + k + q, A_TYPE);
  return x;
}
// Returns elements `at` to `at` + 3 of a line of B.
vec4 fetch_b(uint64_t base, uint line, uint at, uint length) {
  if (B_WHOLE) return load4(base, (line * b_line + at) / 4, B_TYPE);
  vec4 x = vec4(0);
  [[unroll]] for (uint q = 0; q < 4; ++q)
    if (at + q < length) x[q] = load(base, line * b_line + at + q, B_TYPE);
  return x;
}

void along_k(uint64_t at_a, uint64_t at_b, uint batch) {
  const uint n = (group_index() * TEAMS + gl_SubgroupID) * COLS;
  if (n >= N) return;
  float sums[ROWS][COLS];
  [[unroll]] for (uint m = 0; m < ROWS; ++m)
    [[unroll]] for (uint j = 0; j < COLS; ++j) sums[m][j] = 0;
  for (uint k0 = 0; k0 < K; k0 += 4 * SUBGROUP * DEEP) {
    vec4 cols[DEEP][COLS];
    [[unroll]] for (uint d = 0; d < DEEP; ++d) {
      const uint k = k0 + 4 * (d * SUBGROUP + gl_SubgroupInvocationID);
      [[unroll]] for (uint j = 0; j < COLS; ++j) cols[d][j] = k < K ? fetch_b(at_b, min(n + j, N - 1), k, K) : vec4(0);
    }
    [[unroll]] for (uint d = 0; d < DEEP; ++d) {
      const uint k = k0 + 4 * (d * SUBGROUP + gl_SubgroupInvocationID);
      [[unroll]] for (uint m = 0; m < ROWS; ++m) {
        const vec4 row = k < K ? fetch_a(at_a, m, k) : vec4(0);
        [[unroll]] for (uint j = 0; j < COLS; ++j)
          [[unroll]] for (uint q = 0; q < 4; ++q) sums[m][j] = fma(row[q], cols[d][j][q], sums[m][j]);
      }
    }
  }
  const uint mine = gl_SubgroupID * PLACES;
  [[unroll]] for (uint m = 0; m < ROWS; ++m) {
    vec4 total = vec4(0);
    [[unroll]] for (uint j = 0; j < COLS; ++j) total[j] = subgroupAdd(sums[m][j]);
    if (gl_SubgroupInvocationID == 0) team_sums[mine + m] = total;
  }
  controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease);
  [[dont_unroll]] for (uint m = gl_SubgroupInvocationID; m < ROWS; m += SUBGROUP) finish(batch, m, n, team_sums[mine + m], min(N - n, COLS));
}

void along_n(uint64_t at_a, uint64_t at_b, uint batch) {
  const uint n = 4 * (group_index() * SUBGROUP + gl_SubgroupInvocationID);
  vec4 sums[ROWS];
  [[unroll]] for (uint m = 0; m < ROWS; ++m) sums[m] = vec4(0);
  if (n < N) {
    for (uint k = gl_SubgroupID; k < K; k += TEAMS) {
      const vec4 cols = fetch_b(at_b, k, n, N);
      [[unroll]] for (uint m = 0; m < ROWS; ++m)
        sums[m] = fma(vec4(load(at_a, A_CROSS ? k * a_line + m : m * a_line + k, A_TYPE)), cols, sums[m]);
    }
  }
  vec4 total = vec4(0);  // of the row with this subgroup's number; there are at least 8 subgroups
  [[unroll]] for (uint m = 0; m < ROWS; ++m) {
    barrier();
    team_sums[gl_LocalInvocationIndex] = sums[m];
    barrier();
    if (gl_SubgroupID == m)
      for (uint team = 0; team < TEAMS; ++team) total += team_sums[team * SUBGROUP + gl_SubgroupInvocationID];
  }
  if (gl_SubgroupID < ROWS && n < N) finish(batch, gl_SubgroupID, n, total, min(N - n, 4));
}

void main() {
  const uint batch = batch_index();
  const uint64_t at_a = a + uint64_t(batch_offset(batch, a_outer, a_inner)) * (A_TYPE == F32 ? 4 : 2);
  const uint64_t at_b = b + uint64_t(batch_offset(batch, b_outer, b_inner)) * (B_TYPE == F32 ? 4 : 2);
  if (B_CROSS) along_n(at_a, at_b, batch);
  else along_k(at_a, at_b, batch);
}
