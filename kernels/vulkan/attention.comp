#version 460
#extension GL_GOOGLE_include_directive : require
// Bound by f32 multiply-adds: two products of tiles of BQ queries by BK keys, 4x4 scores and 4x8 results an invocation from vec4 reads of
// shared memory (16 multiply-adds a read). Online softmax; the maximum of a row crosses its 8 invocations once a tile, its sum once in all.
// Queries stay in shared memory, keys and then values pass through it in chunks of a row. Tiles above the diagonal are skipped.
// Source: Dao 2023, arXiv:2307.08691.
#include "access.glsl"
#include "math.glsl"
#include "attention_operands.glsl"
#include "attention_tile.glsl"

const uint RQ = BQ / DOWN, RK = BK / ACROSS;  // scores of an invocation: rows DOWN apart, keys ACROSS apart
const uint WEIGHT_PITCH = BK / 4 + 1;

shared vec4 queries[BQ * WHOLE_PITCH];
shared vec4 tile[BK * PITCH];             // keys, then values
shared vec4 weights[BQ * WEIGHT_PITCH];   // (queries, keys)
shared vec4 partial[BQ * (ACROSS / 4)];   // of each row, one of each invocation

float largest(vec4 a, vec4 b) {
  float m = a.x;
  for (uint c = 1; c < 4; ++c) m = a[c] > m ? a[c] : m;
  for (uint c = 0; c < 4; ++c) m = b[c] > m ? b[c] : m;
  return m;
}

void main() {
  const uint blocks = (S + BQ - 1) / BQ, heads = B * HEADS;
  if (group_index() >= blocks * heads) return;
  const uvec2 at = block_and_head(group_index(), blocks, heads);
  const uint q0 = (blocks - 1 - at.x) * BQ, b = at.y / HEADS, h = at.y % HEADS, g = key_head(h);
  const uint t = gl_LocalInvocationID.x, across = t % ACROSS, down = t / ACROSS;
  const uint64_t query = element(q, b * Q_BATCH + h * D, Q_TYPE), key = element(k, b * K_BATCH + g * D, K_TYPE),
                 value = element(v, b * V_BATCH + g * D, V_TYPE);
  const uint64_t bias = element(mask, b * MASK_BATCH, MASK_TYPE);

  for (uint e = t; e < BQ * CHUNKS * PIECES; e += WG) {
    const uint r = e / (CHUNKS * PIECES), c = e % (CHUNKS * PIECES);
    queries[r * WHOLE_PITCH + c] = piece(query, Q_TYPE, Q_ROW, q0 + r, S, 4 * c);
  }
  vec4 sums[RQ * CHUNKS * COLUMNS];
  float top[RQ], total[RQ];
  [[unroll]] for (uint i = 0; i < RQ * CHUNKS * COLUMNS; ++i) sums[i] = vec4(0.0);
  [[unroll]] for (uint i = 0; i < RQ; ++i) {
    top[i] = -3.4028235e38;
    total[i] = 0.0;
  }

  const uint end = visible_keys(q0 + BQ);
  for (uint k0 = 0; k0 < end; k0 += BK) {
    float s[RQ * RK];
    [[unroll]] for (uint i = 0; i < RQ * RK; ++i) s[i] = 0.0;
    for (uint chunk = 0; chunk < CHUNKS; ++chunk) {
      barrier();
      for (uint e = t; e < BK * PIECES; e += WG) {
        const uint r = e / PIECES, c = e % PIECES;
        tile[r * PITCH + c] = piece(key, K_TYPE, K_ROW, k0 + r, T, 4 * (chunk * PIECES + c));
      }
      barrier();
      ADD_SCORES(s, queries, IN_CHUNK, tile, IN_TILE)
    }
    [[unroll]] for (uint j = 0; j < RK; ++j) {
      const uint n = k0 + across + j * ACROSS;
      const float add = MASKED && n < T ? load(bias, n * MASK_KEY, MASK_TYPE) : 0.0;
      [[unroll]] for (uint i = 0; i < RQ; ++i)
        s[i * RK + j] = hidden(q0 + down + i * DOWN, n) ? -INFINITY : fma(s[i * RK + j], scale, add);
    }
    if (DROPPED)
      for (uint e = t; e < BQ * (BK / 4); e += WG)
        weights[e / (BK / 4) * WEIGHT_PITCH + e % (BK / 4)] = marks(at.y * S + q0 + e / (BK / 4), k0 + e % (BK / 4) * 4);
    [[unroll]] for (uint i = 0; i < RQ; ++i) {
      float m = s[i * RK];
      [[unroll]] for (uint j = 1; j < RK; ++j) m = s[i * RK + j] > m ? s[i * RK + j] : m;
      partial[(down + i * DOWN) * (ACROSS / 4) + across / 4][across % 4] = m;
    }
    barrier();
    [[unroll]] for (uint i = 0; i < RQ; ++i) {
      const uint row = down + i * DOWN;
      const float m = largest(partial[row * 2], partial[row * 2 + 1]), old = top[i];
      top[i] = m > old ? m : old;
      const float shrink = weight(old - top[i]);
      total[i] *= shrink;
      [[unroll]] for (uint j = 0; j < CHUNKS * COLUMNS; ++j) sums[i * CHUNKS * COLUMNS + j] *= shrink;
      [[unroll]] for (uint j = 0; j < RK; ++j) {
        const float w = weight(s[i * RK + j] - top[i]);
        total[i] += w;
        const uint place = row * WEIGHT_PITCH + (across + j * ACROSS) / 4;
        weights[place][across % 4] = DROPPED && weights[place][across % 4] == 0.0 ? 0.0 : w;
      }
    }
    [[unroll]] for (uint chunk = 0; chunk < CHUNKS; ++chunk) {
      if (chunk > 0) barrier();
      for (uint e = t; e < BK * PIECES; e += WG) {
        const uint r = e / PIECES, c = e % PIECES;
        tile[r * PITCH + c] = piece(value, V_TYPE, V_ROW, k0 + r, T, 4 * (chunk * PIECES + c));
      }
      barrier();
      ADD_ROWS(sums, RQ, BK)
    }
  }

  [[unroll]] for (uint i = 0; i < RQ; ++i) partial[(down + i * DOWN) * (ACROSS / 4) + across / 4][across % 4] = total[i];
  barrier();
  const uint64_t result = element(y, b * Y_BATCH + h * D, Y_TYPE);
  [[unroll]] for (uint i = 0; i < RQ; ++i) {
    const uint row = down + i * DOWN;
    const vec4 two = partial[row * 2] + partial[row * 2 + 1];
    const float all = (two.x + two.y) + (two.z + two.w);
    const bool blind = floatBitsToUint(all) == 0u;
    const float inverse = FACTOR / all;
    [[unroll]] for (uint chunk = 0; chunk < CHUNKS; ++chunk)
      [[unroll]] for (uint j = 0; j < COLUMNS; ++j) {
        const vec4 x = sums[(i * CHUNKS + chunk) * COLUMNS + j] * inverse;
        store_piece(result, Y_TYPE, Y_ROW, q0 + row, S, 4 * (chunk * PIECES + across + j * ACROSS), blind ? vec4(0.0) : x);
      }
    if (across == 0 && q0 + row < S) f32_ref(lse).at[(b * HEADS + h) * S + q0 + row] = blind ? -INFINITY : top[i] + log_accurate(all);
  }
}
