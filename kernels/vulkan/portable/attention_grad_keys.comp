#version 460
#extension GL_GOOGLE_include_directive : require
// dv = P^T dy, dk = scale dS^T q with P = exp(scale q k^T + mask - lse), dS = P (dy v^T - delta). Bound by f32 multiply-adds: four gemms. A workgroup
// owns the keys and values of a tile and walks the queries of all heads that they serve, in order: no atomics, the same sums in every run. All tiles
// are fetched again in every step, q twice; P and then dS overwrite keys and values. An H200 takes 2.7 times as long if keys and values stay in
// shared memory beside smaller tiles.
#include "access.glsl"
#include "attention/operands.glsl"
#include "attention/tile.glsl"

const uint KEYS = BK / DOWN;  // rows of keys that an invocation sums
#define OWN_KEY(i) (down + (i)*DOWN)

void main() {
  const uint blocks = (T + BK - 1) / BK, heads = B * GROUPS;
  if (group_index() >= blocks * heads) return;
  const uvec2 at = block_and_head(group_index(), blocks, heads);  // the first keys have the most queries, so they come first
  const uint k0 = at.x * BK, b = at.y / GROUPS, g = at.y % GROUPS;
  const uint t = gl_LocalInvocationID.x, across = t % ACROSS, down = t / ACROSS;
  const uint64_t key = element(k, b * K_BATCH + g * D, K_TYPE), value = element(v, b * V_BATCH + g * D, V_TYPE);

  float add[RK];
  [[unroll]] for (uint j = 0; j < RK; ++j)
    add[j] = MASKED && k0 + KEY(j) < T ? load(element(mask, b * MASK_BATCH, MASK_TYPE), (k0 + KEY(j)) * MASK_KEY, MASK_TYPE) : 0.0;
  vec4 dk_sum[KEYS * COLUMNS], dv_sum[KEYS * COLUMNS];
  [[unroll]] for (uint i = 0; i < KEYS * COLUMNS; ++i) dk_sum[i] = dv_sum[i] = vec4(0.0);

  // Walks the tiles of all query heads, one after another.
  const uint start = first_query(k0) / BQ * BQ, end = end_query(k0 + BK - 1), tiles = start < end ? (end - start + BQ - 1) / BQ : 0,
             all = tiles * (HEADS / GROUPS);
  uint64_t query = element(q, b * Q_BATCH + g * (HEADS / GROUPS) * D, Q_TYPE);
  vec4 held_left[QUERY_FETCHES], held_right[KEY_FETCHES];
  GET(held_left, QUERY_FETCHES, query, Q_TYPE, Q_ROW, start, S)
  GET(held_right, KEY_FETCHES, key, K_TYPE, K_ROW, k0, T)
  for (uint n = 0; n < all; ++n) {
    const uint h = g * (HEADS / GROUPS) + n / tiles, q0 = start + n % tiles * BQ, row0 = (b * HEADS + h) * S + q0;
    const uint64_t gradient = element(dy, b * DY_BATCH + h * D, DY_TYPE);
    if (n > 0) barrier();  // waits until everybody has read the last tile
    SET(left, QUERY_FETCHES, held_left, query, Q_TYPE, Q_ROW, q0, S)
    SET(right, KEY_FETCHES, held_right, key, K_TYPE, K_ROW, k0, T)
    barrier();
    GET(held_left, QUERY_FETCHES, gradient, DY_TYPE, DY_ROW, q0, S)
    GET(held_right, KEY_FETCHES, value, V_TYPE, V_ROW, k0, T)
    float p[RQ * RK], ds[RQ * RK];
    [[unroll]] for (uint i = 0; i < RQ * RK; ++i) p[i] = ds[i] = 0.0;
    ADD_SCORES(p)
    barrier();
    SET(left, QUERY_FETCHES, held_left, gradient, DY_TYPE, DY_ROW, q0, S)
    SET(right, KEY_FETCHES, held_right, value, V_TYPE, V_ROW, k0, T)
    barrier();
    GET(held_left, QUERY_FETCHES, query, Q_TYPE, Q_ROW, q0, S)
    ADD_SCORES(ds)
    barrier();
    if (DROPPED) {
      for (uint i = t; i < BQ * (BK / 4); i += WG) {
        const uint s = i % BQ, first = i / BQ * 4;
        const vec4 mark = marks(row0 + s, k0 + first);
        for (uint c = 0; c < 4; ++c) right[(first + c) * QUERY_PITCH + s / 4][s % 4] = mark[c];
      }
      barrier();
    }
    [[unroll]] for (uint i = 0; i < RQ; ++i) {
      const uint s = q0 + QUERY(i);
      const float denominator = s < S ? f32_ref(lse).at[row0 + QUERY(i)] : 0.0, mean = s < S ? f32_ref(delta).at[row0 + QUERY(i)] : 0.0;
      const bool blind = floatBitsToUint(denominator) == 0xff800000u;
      [[unroll]] for (uint j = 0; j < RK; ++j) {
        const bool none = blind || hidden(s, k0 + KEY(j));
        const float w = none ? 0.0 : weight(fma(p[i * RK + j], scale, add[j]) - denominator);
        const bool drops = DROPPED && right[KEY(j) * QUERY_PITCH + QUERY(i) / 4][i % 4] == 0.0;
        const float dp = drops ? 0.0 : DROPPED ? ds[i * RK + j] * FACTOR : ds[i * RK + j];
        ds[i * RK + j] = none ? 0.0 : w * (dp - mean) * scale;
        p[i * RK + j] = drops ? 0.0 : DROPPED ? w * FACTOR : w;
      }
    }
    // Stores four queries of a key at once.
#define PUT_WEIGHTS(w)                                                 \
  [[unroll]] for (uint i = 0; i < RQ; i += 4)                          \
    [[unroll]] for (uint j = 0; j < RK; ++j)                           \
      right[KEY(j) * QUERY_PITCH + QUERY(i) / 4] = vec4(w[i * RK + j], w[(i + 1) * RK + j], w[(i + 2) * RK + j], w[(i + 3) * RK + j]);
    PUT_WEIGHTS(p)
    barrier();
    ADD_ROWS(dv_sum, KEYS, OWN_KEY, right, left, BQ)
    barrier();
    SET(left, QUERY_FETCHES, held_left, query, Q_TYPE, Q_ROW, q0, S)
    PUT_WEIGHTS(ds)
    barrier();
    if (n + 1 < all) {
      query = element(q, b * Q_BATCH + (g * (HEADS / GROUPS) + (n + 1) / tiles) * D, Q_TYPE);
      GET(held_left, QUERY_FETCHES, query, Q_TYPE, Q_ROW, start + (n + 1) % tiles * BQ, S)
      GET(held_right, KEY_FETCHES, key, K_TYPE, K_ROW, k0, T)
    }
    ADD_ROWS(dk_sum, KEYS, OWN_KEY, right, left, BQ)
  }

  const uint64_t to_k = element(dk, b * DK_BATCH + g * D, K_TYPE), to_v = element(dv, b * DV_BATCH + g * D, V_TYPE);
  [[unroll]] for (uint i = 0; i < KEYS; ++i)
    [[unroll]] for (uint j = 0; j < COLUMNS; ++j) {
      const uint row = k0 + OWN_KEY(i), column = 4 * (across + j * ACROSS);
      store_piece(to_k, K_TYPE, DK_ROW, row, T, column, dk_sum[i * COLUMNS + j]);
      store_piece(to_v, V_TYPE, DV_ROW, row, T, column, dv_sum[i * COLUMNS + j]);
    }
}
