#version 460
#extension GL_GOOGLE_include_directive : require
// dq = scale dS k with dS as in attention_grad_keys.comp. Bound by f32 multiply-adds: three products. A workgroup owns the queries of a tile and
// walks their keys in order. q and dy stay in shared memory, chunks of values and then keys pass through it.
#include "access.glsl"
#include "attention_operands.glsl"
#include "attention_tile.glsl"

const uint RQ = BQ / DOWN, RK = BK / ACROSS;  // scores of an invocation: queries DOWN apart, keys ACROSS apart
const uint WEIGHT_PITCH = BK / 4 + 1;

shared vec4 queries[BQ * WHOLE_PITCH];
shared vec4 gradients[BQ * WHOLE_PITCH];  // dy
shared vec4 tile[BK * PITCH];             // values or keys
shared vec4 weights[BQ * WEIGHT_PITCH];   // dS, (queries, keys)

void fill(uint64_t base, uint type, uint stride, uint k0, uint chunk) {
  for (uint e = gl_LocalInvocationID.x; e < BK * PIECES; e += WG) {
    const uint r = e / PIECES, c = e % PIECES;
    tile[r * PITCH + c] = piece(base, type, stride, k0 + r, T, 4 * (chunk * PIECES + c));
  }
}

void main() {
  const uint blocks = (S + BQ - 1) / BQ, heads = B * HEADS;
  if (group_index() >= blocks * heads) return;
  const uvec2 at = block_and_head(group_index(), blocks, heads);
  const uint q0 = (blocks - 1 - at.x) * BQ, b = at.y / HEADS, h = at.y % HEADS, g = key_head(h);
  const uint t = gl_LocalInvocationID.x, across = t % ACROSS, down = t / ACROSS;
  const uint64_t query = element(q, b * Q_BATCH + h * D, Q_TYPE), gradient = element(dy, b * DY_BATCH + h * D, DY_TYPE),
                 key = element(k, b * K_BATCH + g * D, K_TYPE), value = element(v, b * V_BATCH + g * D, V_TYPE);
  const uint64_t bias = element(mask, b * MASK_BATCH, MASK_TYPE);

  for (uint e = t; e < BQ * CHUNKS * PIECES; e += WG) {
    const uint r = e / (CHUNKS * PIECES), c = e % (CHUNKS * PIECES);
    queries[r * WHOLE_PITCH + c] = piece(query, Q_TYPE, Q_ROW, q0 + r, S, 4 * c);
    gradients[r * WHOLE_PITCH + c] = piece(gradient, DY_TYPE, DY_ROW, q0 + r, S, 4 * c);
  }
  float denominator[RQ], mean[RQ];
  [[unroll]] for (uint i = 0; i < RQ; ++i) {
    const uint s = q0 + down + i * DOWN, row = at.y * S + s;
    denominator[i] = s < S ? f32_ref(lse).at[row] : 0.0;
    mean[i] = s < S ? f32_ref(delta).at[row] : 0.0;
  }
  vec4 sums[RQ * CHUNKS * COLUMNS];
  [[unroll]] for (uint i = 0; i < RQ * CHUNKS * COLUMNS; ++i) sums[i] = vec4(0.0);

  const uint end = visible_keys(q0 + BQ);
  for (uint k0 = 0; k0 < end; k0 += BK) {
    float p[RQ * RK], ds[RQ * RK];
    [[unroll]] for (uint i = 0; i < RQ * RK; ++i) p[i] = ds[i] = 0.0;
    for (uint chunk = 0; chunk < CHUNKS; ++chunk) {
      barrier();
      fill(value, V_TYPE, V_ROW, k0, chunk);
      barrier();
      ADD_SCORES(ds, gradients, IN_CHUNK, tile, IN_TILE)
    }
    if (DROPPED)
      for (uint e = t; e < BQ * (BK / 4); e += WG)
        weights[e / (BK / 4) * WEIGHT_PITCH + e % (BK / 4)] = marks(at.y * S + q0 + e / (BK / 4), k0 + e % (BK / 4) * 4);
    for (uint chunk = 0; chunk < CHUNKS; ++chunk) {
      barrier();
      fill(key, K_TYPE, K_ROW, k0, chunk);
      barrier();
      ADD_SCORES(p, queries, IN_CHUNK, tile, IN_TILE)
    }
    [[unroll]] for (uint j = 0; j < RK; ++j) {
      const uint n = k0 + across + j * ACROSS;
      const float add = MASKED && n < T ? load(bias, n * MASK_KEY, MASK_TYPE) : 0.0;
      [[unroll]] for (uint i = 0; i < RQ; ++i) {
        const bool none = floatBitsToUint(denominator[i]) == 0xff800000u || hidden(q0 + down + i * DOWN, n);
        const float w = none ? 0.0 : weight(fma(p[i * RK + j], scale, add) - denominator[i]);
        const uint place = (down + i * DOWN) * WEIGHT_PITCH + (across + j * ACROSS) / 4;
        const float dp = !DROPPED ? ds[i * RK + j] : weights[place][across % 4] == 0.0 ? 0.0 : ds[i * RK + j] * FACTOR;
        weights[place][across % 4] = none ? 0.0 : w * (dp - mean[i]) * scale;
      }
    }
    [[unroll]] for (uint chunk = 0; chunk < CHUNKS; ++chunk) {
      if (CHUNKS > 1) {
        barrier();
        fill(key, K_TYPE, K_ROW, k0, chunk);
      }
      barrier();
      ADD_ROWS(sums, RQ, BK)
    }
  }

  const uint64_t to = element(dq, b * DQ_BATCH + h * D, Q_TYPE);
  [[unroll]] for (uint i = 0; i < RQ; ++i)
    [[unroll]] for (uint chunk = 0; chunk < CHUNKS; ++chunk)
      [[unroll]] for (uint j = 0; j < COLUMNS; ++j)
        store_piece(to, Q_TYPE, DQ_ROW, q0 + down + i * DOWN, S, 4 * (chunk * PIECES + across + j * ACROSS), sums[(i * CHUNKS + chunk) * COLUMNS + j]);
}
