#version 460
#extension GL_GOOGLE_include_directive : require
// dq = scale dS k with dS as in attention_grad_keys.comp. Bound by f32 multiply-adds: three gemms. A workgroup owns the queries of a tile and walks
// their keys in order. All tiles are fetched again in every step; dS overwrites the queries.
#include "access.glsl"
#include "attention/operands.glsl"
#include "attention/tile.glsl"

void main() {
  const uint blocks = (S + BQ - 1) / BQ, heads = B * HEADS;
  if (group_index() >= blocks * heads) return;
  const uvec2 at = block_and_head(group_index(), blocks, heads);
  const uint q0 = (blocks - 1 - at.x) * BQ, b = at.y / HEADS, h = at.y % HEADS, g = key_head(h), row0 = at.y * S + q0;
  const uint t = gl_LocalInvocationID.x, across = t % ACROSS, down = t / ACROSS;
  const uint64_t query = element(q, b * Q_BATCH + h * D, Q_TYPE), gradient = element(dy, b * DY_BATCH + h * D, DY_TYPE),
                 key = element(k, b * K_BATCH + g * D, K_TYPE), value = element(v, b * V_BATCH + g * D, V_TYPE),
                 bias = element(mask, b * MASK_BATCH, MASK_TYPE);

  float denominator[RQ], mean[RQ];
  [[unroll]] for (uint i = 0; i < RQ; ++i) {
    const bool there = q0 + QUERY(i) < S;
    denominator[i] = there ? f32_ref(lse).at[row0 + QUERY(i)] : 0.0;
    mean[i] = there ? f32_ref(delta).at[row0 + QUERY(i)] : 0.0;
  }
  vec4 sums[RQ * COLUMNS];
  [[unroll]] for (uint i = 0; i < RQ * COLUMNS; ++i) sums[i] = vec4(0.0);

  const uint begin = first_key(q0) / BK * BK, end = visible_keys(q0 + BQ);
  vec4 held_left[QUERY_FETCHES], held_right[KEY_FETCHES];
  GET(held_left, QUERY_FETCHES, gradient, DY_TYPE, DY_ROW, q0, S)
  GET(held_right, KEY_FETCHES, value, V_TYPE, V_ROW, begin, T)
  for (uint k0 = begin; k0 < end; k0 += BK) {
    if (k0 > begin) barrier();  // waits until everybody has read the last tile
    SET(left, QUERY_FETCHES, held_left, gradient, DY_TYPE, DY_ROW, q0, S)
    SET(right, KEY_FETCHES, held_right, value, V_TYPE, V_ROW, k0, T)
    barrier();
    GET(held_left, QUERY_FETCHES, query, Q_TYPE, Q_ROW, q0, S)
    GET(held_right, KEY_FETCHES, key, K_TYPE, K_ROW, k0, T)
    float p[RQ * RK], ds[RQ * RK];
    [[unroll]] for (uint i = 0; i < RQ * RK; ++i) p[i] = ds[i] = 0.0;
    ADD_SCORES(ds)
    barrier();
    SET(left, QUERY_FETCHES, held_left, query, Q_TYPE, Q_ROW, q0, S)
    SET(right, KEY_FETCHES, held_right, key, K_TYPE, K_ROW, k0, T)
    barrier();
    if (k0 + BK < end) {
      GET(held_left, QUERY_FETCHES, gradient, DY_TYPE, DY_ROW, q0, S)
      GET(held_right, KEY_FETCHES, value, V_TYPE, V_ROW, k0 + BK, T)
    }
    ADD_SCORES(p)
    barrier();
    if (DROPPED) {
      MARK_LEFT(row0, k0)
      barrier();
    }
    [[unroll]] for (uint j = 0; j < RK; ++j) {
      const uint n = k0 + KEY(j);
      const float add = MASKED && n < T ? load(bias, n * MASK_KEY, MASK_TYPE) : 0.0;
      [[unroll]] for (uint i = 0; i < RQ; ++i) {
        const bool none = floatBitsToUint(denominator[i]) == 0xff800000u || hidden(q0 + QUERY(i), n);
        const float w = none ? 0.0 : weight(fma(p[i * RK + j], scale, add) - denominator[i]);
        const uint place = QUERY(i) * KEY_PITCH + KEY(j) / 4;
        const float dp = !DROPPED ? ds[i * RK + j] : left[place][across % 4] == 0.0 ? 0.0 : ds[i * RK + j] * FACTOR;
        left[place][across % 4] = none ? 0.0 : w * (dp - mean[i]) * scale;
      }
    }
    barrier();
    ADD_ROWS(sums, RQ, QUERY, left, right, BK)
  }

  const uint64_t to = element(dq, b * DQ_BATCH + h * D, Q_TYPE);
  [[unroll]] for (uint i = 0; i < RQ; ++i)
    [[unroll]] for (uint j = 0; j < COLUMNS; ++j)
      store_piece(to, Q_TYPE, DQ_ROW, q0 + QUERY(i), S, 4 * (across + j * ACROSS), sums[i * COLUMNS + j]);
}
