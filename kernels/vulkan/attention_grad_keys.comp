#version 460
#extension GL_GOOGLE_include_directive : require
// dv = P^T dy, dk = scale dS^T q with P = exp(scale q k^T + mask - lse), dS = P (dy v^T - delta). Bound by f32 multiply-adds: four products.
// A workgroup owns the keys and values of a tile and walks the queries of all heads that they serve, in order: no atomics, the same sums every
// run. Keys and values stay in shared memory, chunks of q and dy rows pass through it; q passes twice, for shared memory holds one of them.
#include "access.glsl"
#include "attention_operands.glsl"
#include "attention_tile.glsl"

const uint RQ = BQ / DOWN, RK = BK / ACROSS;   // scores of an invocation: queries DOWN apart, keys ACROSS apart
const uint KEYS = BK / DOWN;                   // key rows that it sums, DOWN apart
const uint WEIGHT_PITCH = BQ / 4 + 1;

shared vec4 keys[BK * WHOLE_PITCH];
shared vec4 values[BK * WHOLE_PITCH];
shared vec4 tile[BQ * PITCH];            // q or dy
shared vec4 weights[BK * WEIGHT_PITCH];  // P or dS, (keys, queries)

void fill(uint64_t base, uint type, uint stride, uint q0, uint chunk) {
  for (uint e = gl_LocalInvocationID.x; e < BQ * PIECES; e += WG) {
    const uint r = e / PIECES, c = e % PIECES;
    tile[r * PITCH + c] = piece(base, type, stride, q0 + r, S, 4 * (chunk * PIECES + c));
  }
}

void main() {
  const uint blocks = (T + BK - 1) / BK, heads = B * GROUPS;
  if (group_index() >= blocks * heads) return;
  const uvec2 at = block_and_head(group_index(), blocks, heads);  // the first keys have the most queries
  const uint k0 = at.x * BK, b = at.y / GROUPS, g = at.y % GROUPS;
  const uint t = gl_LocalInvocationID.x, across = t % ACROSS, down = t / ACROSS;
  const uint64_t key = element(k, b * K_BATCH + g * D, K_TYPE), value = element(v, b * V_BATCH + g * D, V_TYPE);

  for (uint e = t; e < BK * CHUNKS * PIECES; e += WG) {
    const uint r = e / (CHUNKS * PIECES), c = e % (CHUNKS * PIECES);
    keys[r * WHOLE_PITCH + c] = piece(key, K_TYPE, K_ROW, k0 + r, T, 4 * c);
    values[r * WHOLE_PITCH + c] = piece(value, V_TYPE, V_ROW, k0 + r, T, 4 * c);
  }
  float add[RK];
  [[unroll]] for (uint j = 0; j < RK; ++j) {
    const uint n = k0 + across + j * ACROSS;
    add[j] = MASKED && n < T ? load(element(mask, b * MASK_BATCH, MASK_TYPE), n * MASK_KEY, MASK_TYPE) : 0.0;
  }
  const uint SUMS = KEYS * CHUNKS * COLUMNS;
  vec4 dk_sum[SUMS], dv_sum[SUMS];
  [[unroll]] for (uint i = 0; i < SUMS; ++i) dk_sum[i] = dv_sum[i] = vec4(0.0);

  for (uint h = g * (HEADS / GROUPS); h < (g + 1) * (HEADS / GROUPS); ++h) {
    const uint64_t query = element(q, b * Q_BATCH + h * D, Q_TYPE), gradient = element(dy, b * DY_BATCH + h * D, DY_TYPE);
    const uint row0 = (b * HEADS + h) * S;
    for (uint q0 = first_query(k0) / BQ * BQ; q0 < S; q0 += BQ) {
      float p[RQ * RK], ds[RQ * RK];
      [[unroll]] for (uint i = 0; i < RQ * RK; ++i) p[i] = ds[i] = 0.0;
      for (uint chunk = 0; chunk < CHUNKS; ++chunk) {
        barrier();
        fill(query, Q_TYPE, Q_ROW, q0, chunk);
        barrier();
        ADD_SCORES(p, tile, IN_TILE, keys, IN_CHUNK)
      }
      if (DROPPED)
        for (uint e = t; e < BQ * (BK / 4); e += WG) {
          const uint s = e % BQ, n = e / BQ * 4;
          const vec4 mark = marks(row0 + q0 + s, k0 + n);
          for (uint c = 0; c < 4; ++c) weights[(n + c) * WEIGHT_PITCH + s / 4][s % 4] = mark[c];
        }
      for (uint chunk = 0; chunk < CHUNKS; ++chunk) {
        barrier();
        fill(gradient, DY_TYPE, DY_ROW, q0, chunk);
        barrier();
        ADD_SCORES(ds, tile, IN_TILE, values, IN_CHUNK)
      }
      [[unroll]] for (uint i = 0; i < RQ; ++i) {
        const uint s = q0 + down + i * DOWN;
        const float denominator = s < S ? f32_ref(lse).at[row0 + s] : 0.0, mean = s < S ? f32_ref(delta).at[row0 + s] : 0.0;
        const bool blind = floatBitsToUint(denominator) == 0xff800000u;
        [[unroll]] for (uint j = 0; j < RK; ++j) {
          const bool none = blind || hidden(s, k0 + across + j * ACROSS);
          const float w = none ? 0.0 : weight(fma(p[i * RK + j], scale, add[j]) - denominator);
          const uint place = (across + j * ACROSS) * WEIGHT_PITCH + (down + i * DOWN) / 4;
          const bool drops = DROPPED && weights[place][down % 4] == 0.0;
          const float dp = drops ? 0.0 : DROPPED ? ds[i * RK + j] * FACTOR : ds[i * RK + j];
          ds[i * RK + j] = none ? 0.0 : w * (dp - mean) * scale;
          weights[place][down % 4] = drops ? 0.0 : DROPPED ? w * FACTOR : w;
        }
      }
      [[unroll]] for (uint chunk = 0; chunk < CHUNKS; ++chunk) {
        if (CHUNKS > 1) {
          barrier();
          fill(gradient, DY_TYPE, DY_ROW, q0, chunk);
        }
        barrier();
        ADD_ROWS(dv_sum, KEYS, BQ)
      }
      barrier();
      [[unroll]] for (uint i = 0; i < RQ; ++i)
        [[unroll]] for (uint j = 0; j < RK; ++j)
          weights[(across + j * ACROSS) * WEIGHT_PITCH + (down + i * DOWN) / 4][down % 4] = ds[i * RK + j];
      [[unroll]] for (uint chunk = 0; chunk < CHUNKS; ++chunk) {
        if (chunk > 0) barrier();
        fill(query, Q_TYPE, Q_ROW, q0, chunk);
        barrier();
        ADD_ROWS(dk_sum, KEYS, BQ)
      }
    }
  }

  const uint64_t to_k = element(dk, b * DK_BATCH + g * D, K_TYPE), to_v = element(dv, b * DV_BATCH + g * D, V_TYPE);
  [[unroll]] for (uint i = 0; i < KEYS; ++i)
    [[unroll]] for (uint chunk = 0; chunk < CHUNKS; ++chunk)
      [[unroll]] for (uint j = 0; j < COLUMNS; ++j) {
        const uint n = (i * CHUNKS + chunk) * COLUMNS + j, row = k0 + down + i * DOWN, column = 4 * (chunk * PIECES + across + j * ACROSS);
        store_piece(to_k, K_TYPE, DK_ROW, row, T, column, dk_sum[n]);
        store_piece(to_v, V_TYPE, DV_ROW, row, T, column, dv_sum[n]);
      }
}
