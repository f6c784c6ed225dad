#version 460
#extension GL_GOOGLE_include_directive : require
// variant bf16: -DCOOPMAT=1 -DBFLOAT16=1 needs coopmat_bf16
// variant f16: -DCOOPMAT=1 needs coopmat
// dv = P^T dy, dk = scale dS^T q with P and dS as in attention_grad_khr_queries.comp, all transposed. A subgroup owns keys and walks the queries of
// all heads that they serve, in order: no atomics, the same sums in every run. Sums start at -lse and -delta of the tile's queries. P and dS cross
// strips one matrix at a time and enter the second gemms at once, so that registers hold one matrix of each. Bound by what surrounds the four gemms:
// without them three quarters of the time remain. An H200 takes 1.8 times as long with two strips per subgroup, 1.3 times with tiles of 64 (both for
// registers), 1.1 times with eight subgroups, 2 times if P and dS of a whole tile cross before the second gemms begin.
#include "access.glsl"
#include "attention/operands.glsl"
#include "attention/matrix.glsl"

shared uvec4 query_tile[BC * PITCH];
shared uvec4 gradient_tile[BC * PITCH];   // dy
shared uvec4 strips[SUBGROUPS * 2 * STRIP];
shared float less_lse[BC], less_delta[BC];  // for the tile's queries; -lse in units of raw scores
shared float bias[BR];                      // of each key, in units of raw scores
const uint STATISTICS = (BC + WG - 1) / WG;  // statistics of the tile's queries that an invocation fetches

#define KEPT(row) true

void main() {
  const uint blocks = (T + BR - 1) / BR, heads = B * GROUPS;
  if (group_index() >= blocks * heads) return;
  const uvec2 at = block_and_head(group_index(), blocks, heads);  // the first keys have the most queries, so they come first
  const uint b = at.y / GROUPS, g = at.y % GROUPS;
  const uint t = gl_LocalInvocationID.x, lane = gl_SubgroupInvocationID;
  const uint own = gl_SubgroupID * M, strip = gl_SubgroupID * 2 * STRIP, second = strip + STRIP;
  const uint k0 = at.x * BR, row0 = k0 + own;
  const uint64_t key = element(k, b * K_BATCH + g * D, K_TYPE), value = element(v, b * V_BATCH + g * D, V_TYPE),
                 to_k = element(dk, b * DK_BATCH + g * D, K_TYPE), to_v = element(dv, b * DV_BATCH + g * D, V_TYPE),
                 mask0 = element(mask, b * MASK_BATCH, MASK_TYPE);
  const float two = scale * LOG2E;

  if (CAUSAL) fill_aside();
  // Whole strips are copied, so that the loop uses only constant indices and its values stay in registers.
  LEFT_MATRIX k_left[FD], v_left[FD], loaded[FD];
  LOAD_STRIP(loaded, strip, key, K_ROW, row0, T)
  UNROLL for (uint d = 0; d < FD; ++d) k_left[d] = loaded[d];
  LOAD_STRIP(loaded, strip, value, V_ROW, row0, T)
  UNROLL for (uint d = 0; d < FD; ++d) v_left[d] = loaded[d];
  SUM_MATRIX add;
  if (BIASED) {
    for (uint r = lane; r < M; r += SUBGROUP) {
      const float x = MASKED && row0 + r < T ? load(mask0, (row0 + r) * MASK_KEY, MASK_TYPE) / scale : 0.0;
      bias[own + r] = x < HIDDEN ? HIDDEN : x;
    }
    subgroup_fence();
    coopMatLoad(add, bias, own, 0, COLUMNS);
  }
  SUM_MATRIX dk_sums[FD], dv_sums[FD];
  UNROLL for (uint d = 0; d < FD; ++d) dk_sums[d] = dv_sums[d] = SUM_MATRIX(0.0);

  // Walks the tiles of all query heads, one after another.
  const uint start = first_query(k0) / BC * BC, end = end_query(k0 + BR - 1), own_end = end_query(row0 + M - 1),
             tiles = start < end ? (end - start + BC - 1) / BC : 0, all = tiles * (HEADS / GROUPS);
  uvec4 held_queries[FETCHES], held_gradients[FETCHES];
  float held_lse[STATISTICS], held_delta[STATISTICS];
  for (uint n = 0; n <= all; ++n) {  // tile n is fetched while tile n - 1 is processed
    if (n > 0) {
      if (n > 1) barrier();  // waits until everybody has read the last tile
      PUT(query_tile, held_queries)
      PUT(gradient_tile, held_gradients)
      UNROLL for (uint i = 0; i < STATISTICS; ++i) {
        const uint c = t + i * WG;
        if (c < BC) {
          less_lse[c] = floatBitsToUint(held_lse[i]) == 0xff800000u ? HIDDEN : -held_lse[i] / scale;
          less_delta[c] = -held_delta[i];
        }
      }
      barrier();
    }
    if (n < all) {
      const uint head = g * (HEADS / GROUPS) + n / tiles, first = start + n % tiles * BC;
      FETCH(held_queries, element(q, b * Q_BATCH + head * D, Q_TYPE), Q_ROW, first, S)
      FETCH(held_gradients, element(dy, b * DY_BATCH + head * D, DY_TYPE), DY_ROW, first, S)
      UNROLL for (uint i = 0; i < STATISTICS; ++i) {
        const uint c = t + i * WG, row = (b * HEADS + head) * S + first + c;
        const bool there = c < BC && first + c < S;
        held_lse[i] = there ? f32_ref(lse).at[row] : -INFINITY;
        held_delta[i] = there ? f32_ref(delta).at[row] : 0.0;
      }
    }
    if (n == 0) continue;
    const uint h = g * (HEADS / GROUPS) + (n - 1) / tiles, q0 = start + (n - 1) % tiles * BC;
    const bool sees = !CAUSAL || (row0 + S <= q0 + BC - 1 + T && q0 < own_end);  // whether some query of the tile sees keys of the strip
    const bool crosses = CAUSAL && (row0 + M - 1 + S > q0 + T || (WINDOWED && q0 + BC > end_query(row0)));
    RESULT_MATRIX marks[FC];  // 1 where a probability is kept, else 0
    if (DROPPED) {
      if (sees)
        for (uint i = lane; i < M / 4 * (BC / 2); i += SUBGROUP) {  // four keys, two queries
          const uint r = i % (M / 4) * 4, c = i / (M / 4), row = (b * HEADS + h) * S + q0 + 2 * c;
          const bvec4 low = kept(row, (row0 + r) / 4), high = kept(row + 1, (row0 + r) / 4);
          for (uint j = 0; j < 4; ++j) strips[strip + (r + j) * STRIP_PITCH + c / 4][c % 4] = two_halves(low[j], high[j], ONE);
        }
      subgroup_fence();
      if (sees) UNROLL for (uint f = 0; f < FC; ++f) coopMatLoad(marks[f], strips, strip + f * (M / 8), STRIP_PITCH, ROWS);
      subgroup_fence();
    }
    UNROLL for (uint f = 0; f < FC; ++f) {
      if (sees) {
        SUM_MATRIX p, ds, less;
        coopMatLoad(p, less_lse, f * M, 0, ROWS);
        coopMatLoad(less, less_delta, f * M, 0, ROWS);
        if (DROPPED) ds = SUM_MATRIX(0.0);
        else ds = less;
        if (BIASED) p = p + add;
        UNROLL for (uint d = 0; d < FD; ++d) {
          RIGHT_MATRIX right;
          coopMatLoad(right, query_tile, f * M * PITCH + d * (M / 8), PITCH, COLUMNS);
          p = coopMatMulAdd(k_left[d], right, p);
          coopMatLoad(right, gradient_tile, f * M * PITCH + d * (M / 8), PITCH, COLUMNS);
          ds = coopMatMulAdd(v_left[d], right, ds);
        }
        if (crosses) {  // key row0 + r, query q0 + f M + c
          SUM_MATRIX apart;
          coopMatLoad(apart, aside, 0, M, ROWS);
          const float least = float(int(row0) - int(q0 + f * M + T - S));
          UNROLL for (uint e = 0; e < apart.length(); ++e)
            if (apart[e] < least || (WINDOWED && apart[e] >= least + float(window))) p[e] = HIDDEN;
        }
        if (DROPPED) {
          const SUM_MATRIX mark = SUM_MATRIX(marks[f]);
          UNROLL for (uint e = 0; e < p.length(); ++e) {
            const bool keeps = mark[e] != 0.0;
            const float weight = exp2(p[e] * two);
            p[e] = gemm_operand(keeps ? weight * FACTOR : 0.0);
            ds[e] = gemm_operand(weight * ((keeps ? ds[e] * FACTOR : 0.0) + less[e]));
          }
        } else {
          UNROLL for (uint e = 0; e < p.length(); ++e) {
            const float weight = exp2(p[e] * two);
            p[e] = gemm_operand(weight);
            ds[e] = gemm_operand(weight * ds[e]);
          }
        }
        coopMatStore(RESULT_MATRIX(p), strips, strip + f * (M / 8), STRIP_PITCH, ROWS);
        coopMatStore(RESULT_MATRIX(ds), strips, second + f * (M / 8), STRIP_PITCH, ROWS);
      }
      subgroup_fence();
      if (sees) {
        LEFT_MATRIX p, ds;
        coopMatLoad(p, strips, strip + f * (M / 8), STRIP_PITCH, ROWS);
        coopMatLoad(ds, strips, second + f * (M / 8), STRIP_PITCH, ROWS);
        UNROLL for (uint d = 0; d < FD; ++d) {
          RIGHT_MATRIX right;
          coopMatLoad(right, gradient_tile, f * M * PITCH + d * (M / 8), PITCH, ROWS);
          dv_sums[d] = coopMatMulAdd(p, right, dv_sums[d]);
          coopMatLoad(right, query_tile, f * M * PITCH + d * (M / 8), PITCH, ROWS);
          dk_sums[d] = coopMatMulAdd(ds, right, dk_sums[d]);
        }
      }
    }
    subgroup_fence();
  }
  SUM_MATRIX stored[FD];
  UNROLL for (uint d = 0; d < FD; ++d) stored[d] = dv_sums[d];
  STORE_STRIP(stored, strip, to_v, DV_ROW, row0, T, KEPT)
  UNROLL for (uint d = 0; d < FD; ++d)
    UNROLL for (uint e = 0; e < stored[d].length(); ++e) stored[d][e] = dk_sums[d][e] * scale;
  STORE_STRIP(stored, second, to_k, DK_ROW, row0, T, KEPT)
}
