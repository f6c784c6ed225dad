#version 460
#extension GL_GOOGLE_include_directive : require
// variant bf16: -DCOOPMAT=1 -DBFLOAT16=1 needs coopmat_bf16
// variant f16: -DCOOPMAT=1 needs coopmat
// variant packed_bf16: -DPACKED -DCOOPMAT=1 -DBFLOAT16=1 needs coopmat_bf16
// variant packed_f16: -DPACKED -DCOOPMAT=1 needs coopmat
//
// Bound more by the exchange between its two gemms than by the gemms. The scores of a strip are relative to a reference for each row, the largest
// score when the reference was last set: so exp2 can follow at once. Only where a score exceeds the reference by more than SLACK (usually once or
// twice per row) does the maximum cross the strip, and the sums are scaled down. Row sums stay distributed over the columns of a matrix until the
// end. Keys and values are fetched into registers during the other gemm, so that each of the two barriers of a tile hides one of them.
#include "access.glsl"
#include "math/math.glsl"
#include "attention/operands.glsl"
#include "attention/matrix.glsl"
#ifdef PACKED
#include "attention/packed.glsl"
#endif
#extension GL_KHR_shader_subgroup_vote : require

const float SLACK = 8;  // in base-2 scores: weights stay below 2^8

shared uvec4 key_tile[BC * PITCH];
shared uvec4 value_tile[BC * PITCH];
shared uvec4 strips[SUBGROUPS * STRIPS * STRIP];
shared float bias[BC];      // of the tile's keys, in units of raw scores
shared float reference[BR]; // of each row, in units of raw scores; HIDDEN: the row has seen no key
shared float row_a[BR], row_b[BR];

#define KEPT(row) (row_a[own + s * M + row] != 0.0)

void main() {
  const uint t = gl_LocalInvocationID.x, lane = gl_SubgroupInvocationID;
  const uint own = gl_SubgroupID * STRIPS * M, strip0 = gl_SubgroupID * STRIPS * STRIP;  // this subgroup's first row and first strip in the workgroup
#ifdef PACKED
  const packed_queries given = own_packed_queries(BR);
  if (!given.there) return;
  const uvec2 at = uvec2(0);
  const uint q0 = given.q0, row0 = q0 + own, h = given.head, from = given.first;
  const uint64_t key = element(k, from * K_ROW + h * D, K_TYPE), value = element(v, from * V_ROW + h * D, V_TYPE),
                 query = element(q, from * Q_ROW + h * D, Q_TYPE), result = element(y, from * Y_ROW + h * D, Y_TYPE), mask0 = mask;
#else
  const uint blocks = (S + BR - 1) / BR, heads = B * HEADS;
  if (group_index() >= blocks * heads) return;
  const uvec2 at = block_and_head(group_index(), blocks, heads);
  const uint b = at.y / HEADS, h = at.y % HEADS, g = key_head(h);
  const uint q0 = (blocks - 1 - at.x) * BR, row0 = q0 + own;
  const uint64_t key = element(k, b * K_BATCH + g * D, K_TYPE), value = element(v, b * V_BATCH + g * D, V_TYPE),
                 query = element(q, b * Q_BATCH + h * D, Q_TYPE), result = element(y, b * Y_BATCH + h * D, Y_TYPE),
                 mask0 = element(mask, b * MASK_BATCH, MASK_TYPE);
#endif
  const float two = scale * LOG2E, limit = SLACK / two;

  uvec4 held[FETCHES];
  const uint begin = first_key(q0) / BC * BC, end = visible_keys(q0 + BR);  // keys of the workgroup
  FETCH(held, key, K_ROW, begin, T)
  if (CAUSAL) fill_aside();
  LEFT_MATRIX left[STRIPS * FD];
  UNROLL for (uint s = 0; s < STRIPS; ++s) {
    LEFT_MATRIX one[FD];
    LOAD_STRIP(one, strip0 + s * STRIP, query, Q_ROW, row0 + s * M, S)
    UNROLL for (uint d = 0; d < FD; ++d) left[s * FD + d] = one[d];
  }
  SUM_MATRIX sums[STRIPS * FD], total[STRIPS], less[STRIPS];
  UNROLL for (uint i = 0; i < STRIPS * FD; ++i) sums[i] = SUM_MATRIX(0.0);
  UNROLL for (uint s = 0; s < STRIPS; ++s) total[s] = less[s] = SUM_MATRIX(0.0);
  for (uint r = lane; r < STRIPS * M; r += SUBGROUP) reference[own + r] = HIDDEN;
  bool settled = false;  // whether all rows have a reference

  const uint own_begin = first_key(row0), own_end = visible_keys(row0 + STRIPS * M);
  for (uint k0 = begin; k0 < end; k0 += BC) {
    PUT(key_tile, held)
    if (BIASED)
      for (uint c = t; c < BC; c += WG) {
        const float add = k0 + c >= T ? HIDDEN : MASKED ? load(mask0, (k0 + c) * MASK_KEY, MASK_TYPE) / scale : 0.0;
        bias[c] = add < HIDDEN ? HIDDEN : add;
      }
    FETCH(held, value, V_ROW, k0, T)
    barrier();
    const bool sees = k0 < own_end && k0 + BC > own_begin;
    SUM_MATRIX scores[STRIPS * FC];
    if (sees) {
      UNROLL for (uint f = 0; f < FC; ++f) {
        SUM_MATRIX add;
        if (BIASED) coopMatLoad(add, bias, f * M, 0, ROWS);
        UNROLL for (uint s = 0; s < STRIPS; ++s) scores[s * FC + f] = BIASED ? add + less[s] : less[s];
        UNROLL for (uint d = 0; d < FD; ++d) {
          RIGHT_MATRIX right;
          coopMatLoad(right, key_tile, f * M * PITCH + d * (M / 8), PITCH, COLUMNS);
          UNROLL for (uint s = 0; s < STRIPS; ++s) scores[s * FC + f] = coopMatMulAdd(left[s * FD + d], right, scores[s * FC + f]);
        }
      }
    }
    PUT(value_tile, held)
    barrier();
    if (k0 + BC < end) FETCH(held, key, K_ROW, k0 + BC, T)

    if (sees && CAUSAL && (k0 + BC > row0 + T - S + 1 || k0 < first_key(row0 + STRIPS * M - 1))) {
      SUM_MATRIX apart;
      coopMatLoad(apart, aside, 0, M, ROWS);
      UNROLL for (uint s = 0; s < STRIPS; ++s)
        UNROLL for (uint f = 0; f < FC; ++f) {
          const float last = float(int(row0 + s * M + T - S) - int(k0 + f * M));
          UNROLL for (uint e = 0; e < apart.length(); ++e)
            if (apart[e] > last || (WINDOWED && apart[e] + float(window) <= last)) scores[s * FC + f][e] = HIDDEN;
        }
    }
    bool rises = false;  // whether the reference of some row rises
    if (sees) {
      SUM_MATRIX highest[STRIPS];
      bool passed = !settled;
      UNROLL for (uint s = 0; s < STRIPS; ++s) {
        highest[s] = scores[s * FC];
        UNROLL for (uint e = 0; e < highest[s].length(); ++e) {
          float high = scores[s * FC][e];
          UNROLL for (uint f = 1; f < FC; ++f) high = max(high, scores[s * FC + f][e]);
          highest[s][e] = high;
          passed = passed || high > limit;
        }
      }
      rises = subgroupAny(passed);
      if (rises) UNROLL for (uint s = 0; s < STRIPS; ++s) coopMatStore(highest[s], strips, strip0 + s * STRIP, FLOAT_PITCH, ROWS);
    }
    subgroup_fence();
    if (rises) {
      bool unseen = false;
      for (uint r = lane; r < STRIPS * M; r += SUBGROUP) {
        float high = HIDDEN;
        for (uint c = 0; c < M / 4; ++c) {
          const vec4 x = uintBitsToFloat(strips[strip0 + r / M * STRIP + r % M * FLOAT_PITCH + c]);
          high = max(max(high, max(x.x, x.y)), max(x.z, x.w));
        }
        const float old = reference[own + r];
        const bool first = old == HIDDEN, sees_none = high < 0.1 * HIDDEN;
        const float rise = sees_none ? 0.0 : first ? high : max(high, 0.0);
        row_a[own + r] = rise;
        row_b[own + r] = first ? 0.0 : exp2(-two * rise);
        if (!sees_none) reference[own + r] = first ? high : old + rise;
        unseen = unseen || (first && sees_none);
      }
      settled = !subgroupAny(unseen);
    }
    subgroup_fence();
    if (rises)
      UNROLL for (uint s = 0; s < STRIPS; ++s) {
        SUM_MATRIX rise, shrink;
        coopMatLoad(rise, row_a, own + s * M, 0, COLUMNS);
        coopMatLoad(shrink, row_b, own + s * M, 0, COLUMNS);
        less[s] = less[s] - rise;
        UNROLL for (uint f = 0; f < FC; ++f) scores[s * FC + f] = scores[s * FC + f] - rise;
        UNROLL for (uint e = 0; e < shrink.length(); ++e) {
          total[s][e] *= shrink[e];
          UNROLL for (uint d = 0; d < FD; ++d) sums[s * FD + d][e] *= shrink[e];
        }
      }
    if (sees)
      UNROLL for (uint s = 0; s < STRIPS; ++s)
        UNROLL for (uint f = 0; f < FC; ++f) {
          UNROLL for (uint e = 0; e < total[s].length(); ++e) {
            const float weight = exp2(scores[s * FC + f][e] * two);
            total[s][e] += weight;
            scores[s * FC + f][e] = gemm_operand(weight);
          }
          coopMatStore(RESULT_MATRIX(scores[s * FC + f]), strips, strip0 + s * STRIP + f * (M / 8), STRIP_PITCH, ROWS);
        }
    subgroup_fence();
    if (DROPPED) {
      if (sees)
        for (uint n = lane; n < STRIPS * M * (BC / 8); n += SUBGROUP) {
          const uint r = n / (BC / 8), c = n % (BC / 8), place = strip0 + r / M * STRIP + r % M * STRIP_PITCH + c;
          strips[place] = strips[place] & of_kept(at.y * S + row0 + r, k0 + 8 * c, 0xffffu);
        }
      subgroup_fence();
    }
    if (sees)
      UNROLL for (uint f = 0; f < FC; ++f) {
        LEFT_MATRIX weights[STRIPS];
        UNROLL for (uint s = 0; s < STRIPS; ++s) coopMatLoad(weights[s], strips, strip0 + s * STRIP + f * (M / 8), STRIP_PITCH, ROWS);
        UNROLL for (uint d = 0; d < FD; ++d) {
          RIGHT_MATRIX right;
          coopMatLoad(right, value_tile, f * M * PITCH + d * (M / 8), PITCH, ROWS);
          UNROLL for (uint s = 0; s < STRIPS; ++s) sums[s * FD + d] = coopMatMulAdd(weights[s], right, sums[s * FD + d]);
        }
      }
    subgroup_fence();
  }

  UNROLL for (uint s = 0; s < STRIPS; ++s) coopMatStore(total[s], strips, strip0 + s * STRIP, FLOAT_PITCH, ROWS);
  subgroup_fence();
  for (uint r = lane; r < STRIPS * M; r += SUBGROUP) {
    vec4 four = vec4(0.0);
    for (uint c = 0; c < M / 4; ++c) four += uintBitsToFloat(strips[strip0 + r / M * STRIP + r % M * FLOAT_PITCH + c]);
    const float all = (four.x + four.y) + (four.z + four.w);
    const bool blind = reference[own + r] == HIDDEN && !is_nan(all);
    row_a[own + r] = blind ? 0.0 : FACTOR / all;
#ifndef PACKED
    if (row0 + r < S) f32_ref(lse).at[at.y * S + row0 + r] = blind ? -INFINITY : reference[own + r] * scale + log_accurate(all);
#endif
  }
  subgroup_fence();
  UNROLL for (uint s = 0; s < STRIPS; ++s) {
    SUM_MATRIX inverse, part[FD];
    coopMatLoad(inverse, row_a, own + s * M, 0, COLUMNS);
    UNROLL for (uint d = 0; d < FD; ++d)
      UNROLL for (uint e = 0; e < inverse.length(); ++e) part[d][e] = sums[s * FD + d][e] * inverse[e];
    STORE_STRIP(part, strip0 + s * STRIP, result, Y_ROW, row0 + s * M, S, KEPT)
  }
}
