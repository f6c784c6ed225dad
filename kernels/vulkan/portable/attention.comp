#version 460
#extension GL_GOOGLE_include_directive : require
// variant whole:
// variant packed: -DPACKED
//
// Bound by f32 multiply-adds: two gemms of tiles of BQ queries by BK keys. Online softmax; the maximum of a row is shared among its ACROSS
// invocations once per tile, its sum once in all. The weights overwrite the queries, which are fetched again for every tile. Tiles above the diagonal
// and before the window are skipped. An H200 takes 1.1 times as long if tiles are fetched only when needed, 1.3 to 1.4 times if queries stay in
// shared memory.
// Source: Dao 2023, arXiv:2307.08691.
#include "access.glsl"
#include "math/math.glsl"
#include "attention/operands.glsl"
#include "attention/tile.glsl"
#ifdef PACKED
#include "attention/packed.glsl"
#endif

shared vec4 partial[BQ * (ACROSS / 4)];  // of each row, one from each invocation

float largest(uint row) {
  float m = partial[row * (ACROSS / 4)].x;
  [[unroll]] for (uint i = 0; i < ACROSS / 4; ++i) {
    const vec4 a = partial[row * (ACROSS / 4) + i];
    [[unroll]] for (uint c = 0; c < 4; ++c) m = a[c] > m ? a[c] : m;
  }
  return m;
}

void main() {
  const uint t = gl_LocalInvocationID.x, across = t % ACROSS, down = t / ACROSS;
#ifdef PACKED
  const packed_queries own = own_packed_queries(BQ);
  if (!own.there) return;
  const uint q0 = own.q0, h = own.head, row0 = q0;
  const uint64_t query = element(q, own.first * Q_ROW + h * D, Q_TYPE), key = element(k, own.first * K_ROW + h * D, K_TYPE),
                 value = element(v, own.first * V_ROW + h * D, V_TYPE), bias = mask, result = element(y, own.first * Y_ROW + h * D, Y_TYPE);
#else
  const uint blocks = (S + BQ - 1) / BQ, heads = B * HEADS;
  if (group_index() >= blocks * heads) return;
  const uvec2 at = block_and_head(group_index(), blocks, heads);
  const uint q0 = (blocks - 1 - at.x) * BQ, b = at.y / HEADS, h = at.y % HEADS, g = key_head(h), row0 = at.y * S + q0;
  const uint64_t query = element(q, b * Q_BATCH + h * D, Q_TYPE), key = element(k, b * K_BATCH + g * D, K_TYPE),
                 value = element(v, b * V_BATCH + g * D, V_TYPE), bias = element(mask, b * MASK_BATCH, MASK_TYPE),
                 result = element(y, b * Y_BATCH + h * D, Y_TYPE);
#endif

  vec4 sums[RQ * COLUMNS];
  float top[RQ], total[RQ];
  [[unroll]] for (uint i = 0; i < RQ * COLUMNS; ++i) sums[i] = vec4(0.0);
  [[unroll]] for (uint i = 0; i < RQ; ++i) {
    top[i] = -3.4028235e38;
    total[i] = 0.0;
  }

  const uint begin = first_key(q0) / BK * BK, end = visible_keys(q0 + BQ);
  vec4 held_left[QUERY_FETCHES], held_right[KEY_FETCHES];
  GET(held_left, QUERY_FETCHES, query, Q_TYPE, Q_ROW, q0, S)
  GET(held_right, KEY_FETCHES, key, K_TYPE, K_ROW, begin, T)
  for (uint k0 = begin; k0 < end; k0 += BK) {
    if (k0 > begin) barrier();  // waits until everybody has read the last tile
    SET(left, QUERY_FETCHES, held_left, query, Q_TYPE, Q_ROW, q0, S)
    SET(right, KEY_FETCHES, held_right, key, K_TYPE, K_ROW, k0, T)
    barrier();
    GET(held_right, KEY_FETCHES, value, V_TYPE, V_ROW, k0, T)
    float s[RQ * RK];
    [[unroll]] for (uint i = 0; i < RQ * RK; ++i) s[i] = 0.0;
    ADD_SCORES(s)
    [[unroll]] for (uint j = 0; j < RK; ++j) {
      const uint n = k0 + KEY(j);
      const float add = MASKED && n < T ? load(bias, n * MASK_KEY, MASK_TYPE) : 0.0;
      [[unroll]] for (uint i = 0; i < RQ; ++i) s[i * RK + j] = hidden(q0 + QUERY(i), n) ? -INFINITY : fma(s[i * RK + j], scale, add);
    }
    [[unroll]] for (uint i = 0; i < RQ; ++i) {
      float m = s[i * RK];
      [[unroll]] for (uint j = 1; j < RK; ++j) m = s[i * RK + j] > m ? s[i * RK + j] : m;
      partial[QUERY(i) * (ACROSS / 4) + across / 4][across % 4] = m;
    }
    barrier();
    SET(right, KEY_FETCHES, held_right, value, V_TYPE, V_ROW, k0, T)
    if (DROPPED) {
      MARK_LEFT(row0, k0)
      barrier();
    }
    [[unroll]] for (uint i = 0; i < RQ; ++i) {
      const float m = largest(QUERY(i)), old = top[i];
      top[i] = m > old ? m : old;
      const float shrink = weight(old - top[i]);
      total[i] *= shrink;
      [[unroll]] for (uint j = 0; j < COLUMNS; ++j) sums[i * COLUMNS + j] *= shrink;
      [[unroll]] for (uint j = 0; j < RK; ++j) {
        const float w = weight(s[i * RK + j] - top[i]);
        total[i] += w;
        const uint place = QUERY(i) * KEY_PITCH + KEY(j) / 4;
        left[place][across % 4] = DROPPED && left[place][across % 4] == 0.0 ? 0.0 : w;
      }
    }
    barrier();
    if (k0 + BK < end) {
      GET(held_left, QUERY_FETCHES, query, Q_TYPE, Q_ROW, q0, S)
      GET(held_right, KEY_FETCHES, key, K_TYPE, K_ROW, k0 + BK, T)
    }
    ADD_ROWS(sums, RQ, QUERY, left, right, BK)
  }

  barrier();
  [[unroll]] for (uint i = 0; i < RQ; ++i) partial[QUERY(i) * (ACROSS / 4) + across / 4][across % 4] = total[i];
  barrier();
  [[unroll]] for (uint i = 0; i < RQ; ++i) {
    const uint row = q0 + QUERY(i);
    vec4 four = partial[QUERY(i) * (ACROSS / 4)];
    [[unroll]] for (uint c = 1; c < ACROSS / 4; ++c) four += partial[QUERY(i) * (ACROSS / 4) + c];
    const float all = (four.x + four.y) + (four.z + four.w);
    const bool blind = floatBitsToUint(all) == 0u;
    const float inverse = FACTOR / all;
    [[unroll]] for (uint j = 0; j < COLUMNS; ++j)
      store_piece(result, Y_TYPE, Y_ROW, row, S, 4 * (across + j * ACROSS), blind ? vec4(0.0) : sums[i * COLUMNS + j] * inverse);
#ifndef PACKED
    if (across == 0 && row < S) f32_ref(lse).at[row0 + QUERY(i)] = blind ? -INFINITY : top[i] + log_accurate(all);
#endif
  }
}
