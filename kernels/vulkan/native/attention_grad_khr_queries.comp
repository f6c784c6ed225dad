#version 460
#extension GL_GOOGLE_include_directive : require
// variant bf16: -DCOOPMAT=1 -DBFLOAT16=1 needs coopmat_bf16
// variant f16: -DCOOPMAT=1 needs coopmat
// dq = scale dS k with P = exp(scale q k^T + mask - lse), dS = P (dy v^T - delta). A subgroup owns queries. The sums of both gemms start at -lse and
// -delta, so that P and dS follow element by element; dS alone crosses the strip, one matrix at a time, and enters the third gemm at once. Bound by
// shared memory, which every right operand passes through. An H200 takes 1.2 times as long with two strips per subgroup, 1.3 times with eight
// subgroups, 2.1 times if dS of a whole tile crosses before the third gemm begins.
#include "access.glsl"
#include "attention/operands.glsl"
#include "attention/matrix.glsl"

shared uvec4 key_tile[BC * PITCH];
shared uvec4 value_tile[BC * PITCH];
shared uvec4 strips[SUBGROUPS * STRIP];
shared float bias[BC];  // of the tile's keys, in units of raw scores
shared float row_a[BR], row_b[BR];

#define KEPT(row) true

void main() {
  const uint blocks = (S + BR - 1) / BR, heads = B * HEADS;
  if (group_index() >= blocks * heads) return;
  const uvec2 at = block_and_head(group_index(), blocks, heads);
  const uint b = at.y / HEADS, h = at.y % HEADS, g = key_head(h);
  const uint t = gl_LocalInvocationID.x, lane = gl_SubgroupInvocationID;
  const uint own = gl_SubgroupID * M, strip = gl_SubgroupID * STRIP;
  const uint q0 = (blocks - 1 - at.x) * BR, row0 = q0 + own;
  const uint64_t key = element(k, b * K_BATCH + g * D, K_TYPE), value = element(v, b * V_BATCH + g * D, V_TYPE),
                 query = element(q, b * Q_BATCH + h * D, Q_TYPE), gradient = element(dy, b * DY_BATCH + h * D, DY_TYPE),
                 result = element(dq, b * DQ_BATCH + h * D, Q_TYPE), mask0 = element(mask, b * MASK_BATCH, MASK_TYPE);
  const float two = scale * LOG2E;

  uvec4 held_keys[FETCHES], held_values[FETCHES];
  const uint begin = first_key(q0) / BC * BC, end = visible_keys(q0 + BR);  // keys of the workgroup
  FETCH(held_keys, key, K_ROW, begin, T)
  FETCH(held_values, value, V_ROW, begin, T)
  if (CAUSAL) fill_aside();
  // Whole strips are copied, so that the loop uses only constant indices and its values stay in registers.
  LEFT_MATRIX q_left[FD], dy_left[FD], loaded[FD];
  LOAD_STRIP(loaded, strip, query, Q_ROW, row0, S)
  UNROLL for (uint d = 0; d < FD; ++d) q_left[d] = loaded[d];
  LOAD_STRIP(loaded, strip, gradient, DY_ROW, row0, S)
  UNROLL for (uint d = 0; d < FD; ++d) dy_left[d] = loaded[d];
  for (uint r = lane; r < M; r += SUBGROUP) {
    const uint row = at.y * S + row0 + r;
    const bool there = row0 + r < S;
    const float denominator = there ? f32_ref(lse).at[row] : -INFINITY;
    row_a[own + r] = floatBitsToUint(denominator) == 0xff800000u ? HIDDEN : -denominator / scale;
    row_b[own + r] = there ? -f32_ref(delta).at[row] : 0.0;
  }
  subgroup_fence();
  SUM_MATRIX less_lse, less_delta, sums[FD];
  coopMatLoad(less_lse, row_a, own, 0, COLUMNS);
  coopMatLoad(less_delta, row_b, own, 0, COLUMNS);
  UNROLL for (uint d = 0; d < FD; ++d) sums[d] = SUM_MATRIX(0.0);

  const uint own_begin = first_key(row0), own_end = visible_keys(row0 + M);
  for (uint k0 = begin; k0 < end; k0 += BC) {
    if (k0 > begin) barrier();  // waits until everybody has read the last tile
    PUT(key_tile, held_keys)
    PUT(value_tile, held_values)
    if (BIASED)
      for (uint c = t; c < BC; c += WG) {
        const float add = k0 + c >= T ? HIDDEN : MASKED ? load(mask0, (k0 + c) * MASK_KEY, MASK_TYPE) / scale : 0.0;
        bias[c] = add < HIDDEN ? HIDDEN : add;
      }
    barrier();
    if (k0 + BC < end) {
      FETCH(held_keys, key, K_ROW, k0 + BC, T)
      FETCH(held_values, value, V_ROW, k0 + BC, T)
    }
    const bool sees = k0 < own_end && k0 + BC > own_begin;
    const bool crosses = CAUSAL && (k0 + BC > row0 + T - S + 1 || k0 < first_key(row0 + M - 1));
    RESULT_MATRIX marks[FC];  // 1 where a probability is kept, else 0
    if (DROPPED) {
      if (sees)
        for (uint n = lane; n < M * (BC / 8); n += SUBGROUP) {
          const uint r = n / (BC / 8), c = n % (BC / 8);
          strips[strip + r * STRIP_PITCH + c] = of_kept(at.y * S + row0 + r, k0 + 8 * c, ONE);
        }
      subgroup_fence();
      if (sees) UNROLL for (uint f = 0; f < FC; ++f) coopMatLoad(marks[f], strips, strip + f * (M / 8), STRIP_PITCH, ROWS);
      subgroup_fence();
    }
    UNROLL for (uint f = 0; f < FC; ++f) {
      if (sees) {
        SUM_MATRIX p = less_lse, ds = less_delta;
        if (DROPPED) ds = SUM_MATRIX(0.0);
        if (BIASED) {
          SUM_MATRIX add;
          coopMatLoad(add, bias, f * M, 0, ROWS);
          p = p + add;
        }
        UNROLL for (uint d = 0; d < FD; ++d) {
          RIGHT_MATRIX right;
          coopMatLoad(right, key_tile, f * M * PITCH + d * (M / 8), PITCH, COLUMNS);
          p = coopMatMulAdd(q_left[d], right, p);
          coopMatLoad(right, value_tile, f * M * PITCH + d * (M / 8), PITCH, COLUMNS);
          ds = coopMatMulAdd(dy_left[d], right, ds);
        }
        if (crosses) {
          SUM_MATRIX apart;
          coopMatLoad(apart, aside, 0, M, ROWS);
          const float last = float(int(row0 + T - S) - int(k0 + f * M));
          UNROLL for (uint e = 0; e < apart.length(); ++e)
            if (apart[e] > last || (WINDOWED && apart[e] + float(window) <= last)) p[e] = HIDDEN;
        }
        if (DROPPED) {
          const SUM_MATRIX mark = SUM_MATRIX(marks[f]);
          UNROLL for (uint e = 0; e < mark.length(); ++e) ds[e] = (mark[e] != 0.0 ? ds[e] * FACTOR : 0.0) + less_delta[e];
        }
        UNROLL for (uint e = 0; e < p.length(); ++e) ds[e] = gemm_operand(exp2(p[e] * two) * ds[e]);
        coopMatStore(RESULT_MATRIX(ds), strips, strip + f * (M / 8), STRIP_PITCH, ROWS);
      }
      subgroup_fence();
      if (sees) {
        LEFT_MATRIX slopes;
        coopMatLoad(slopes, strips, strip + f * (M / 8), STRIP_PITCH, ROWS);
        UNROLL for (uint d = 0; d < FD; ++d) {
          RIGHT_MATRIX right;
          coopMatLoad(right, key_tile, f * M * PITCH + d * (M / 8), PITCH, ROWS);
          sums[d] = coopMatMulAdd(slopes, right, sums[d]);
        }
      }
    }
    subgroup_fence();
  }
  SUM_MATRIX stored[FD];
  UNROLL for (uint d = 0; d < FD; ++d)
    UNROLL for (uint e = 0; e < stored[d].length(); ++e) stored[d][e] = sums[d][e] * scale;
  STORE_STRIP(stored, strip, result, DQ_ROW, row0, S, KEPT)
}
