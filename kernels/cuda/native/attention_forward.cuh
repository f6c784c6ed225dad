#pragma once
// y = dropout(softmax(scale q k^T + mask)) v on tensor cores. A warp owns strips of 16 queries, whose fragments stay in registers; the
// weights of a tile become the left operand of the second product in their registers. Scores are relative to a reference for each row, the
// largest score when the reference was last set: only where a score exceeds it by more than `slack`, usually once or twice per row, are
// maxima exchanged and sums scaled down. The next tile of keys and values is copied while a tile is processed. Bound by shared memory,
// which every right operand passes through, and by exp2. Source: Dao 2023, arXiv:2307.08691.
#include "../attention/fragments.cuh"
#include "attention_tiles.h"

namespace isotope::cuda::gpu {

template <int D, int WARPS, int STRIPS, int COLUMNS, bool DROPPED> struct attention_forward {
  using tile = row_tile<D>;
  static constexpr int threads = 32 * WARPS, rows = 16 * STRIPS * WARPS, tiles = COLUMNS / 8;
  static constexpr float slack = 8;  // in base-2 scores: weights stay below 2^8

  __device__ static void run(const attention_arguments& a) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int blocks = (a.S + rows - 1) / rows;
    const block_place at = place_of(blockIdx.x, unsigned(blocks), unsigned(a.B * a.H));
    const int b = at.head / a.H, h = at.head % a.H, g = h / (a.H / a.G);
    const int q0 = (blocks - 1 - at.block) * rows, row0 = q0 + warp * 16 * STRIPS;
    const bits16 *query = rows_of<const bits16>(a.q, b, h, a.D), *key = rows_of<const bits16>(a.k, b, g, a.D),
                 *value = rows_of<const bits16>(a.v, b, g, a.D);
    bits16* own = reinterpret_cast<bits16*>(dynamic_shared());                   // (rows, D)
    bits16* stages = own + rows * tile::pitch;                                   // 2 x (keys, values) of (COLUMNS, D)
    float* bias = reinterpret_cast<float*>(stages + 4 * COLUMNS * tile::pitch);  // in units of raw scores
    const float two = a.scale * log2_e, limit = slack / two;
    const attention_dropout dropout(a);

    const int begin = first_key(a, q0) / COLUMNS * COLUMNS, end = end_key(a, q0 + rows - 1);
    const int own_begin = first_key(a, row0), own_end = end_key(a, row0 + 16 * STRIPS - 1);
    tile::template fetch<rows, threads>(own, query, a.q.row, q0, a.S, a.D);
    copy_async_commit();
    fetch_stage(a, stages, key, value, begin);
    copy_async_wait<1>();
    __syncthreads();
    std::uint32_t left[STRIPS][D / 16][4];
    bits16* strip = own + warp * 16 * STRIPS * tile::pitch;
#pragma unroll
    for (int s = 0; s < STRIPS; ++s)
#pragma unroll
      for (int d = 0; d < D / 16; ++d) load_matrix_x4(left[s][d], strip + 16 * s * tile::pitch + tile::along(lane) + 16 * d);

    float sums[STRIPS][D / 8][4], total[STRIPS][2], top[STRIPS][2];
#pragma unroll
    for (int s = 0; s < STRIPS; ++s) {
      total[s][0] = total[s][1] = 0;
      top[s][0] = top[s][1] = hidden_score;
#pragma unroll
      for (int n = 0; n < D / 8; ++n) sums[s][n][0] = sums[s][n][1] = sums[s][n][2] = sums[s][n][3] = 0;
    }

    int stage = 0;
    for (int k0 = begin; k0 < end; k0 += COLUMNS, stage ^= 1) {
      copy_async_wait<0>();
      __syncthreads();  // the tile is there, and everybody has read the one before it
      if (k0 + COLUMNS < end) fetch_stage(a, stages + (stage ^ 1) * 2 * COLUMNS * tile::pitch, key, value, k0 + COLUMNS);
      if (a.masked) {
        for (int c = int(threadIdx.x); c < COLUMNS; c += threads) {
          const float x = k0 + c < a.T ? load(a.mask, b * a.mask_batch + (k0 + c) * a.mask_key, a.mask_type) / a.scale : hidden_score;
          bias[c] = x < hidden_score ? hidden_score : x;
        }
        __syncthreads();
      }
      if (k0 >= own_end || k0 + COLUMNS <= own_begin) continue;
      const bits16 *keys = stages + stage * 2 * COLUMNS * tile::pitch, *values = keys + COLUMNS * tile::pitch;

      float scores[STRIPS][tiles][4];
#pragma unroll
      for (int s = 0; s < STRIPS; ++s)
#pragma unroll
        for (int n = 0; n < tiles; ++n) scores[s][n][0] = scores[s][n][1] = scores[s][n][2] = scores[s][n][3] = 0;
#pragma unroll
      for (int d = 0; d < D / 16; ++d)
#pragma unroll
        for (int n = 0; n < tiles; n += 2) {
          std::uint32_t right[4];
          load_matrix_x4(right, keys + tile::across(lane) + 8 * n * tile::pitch + 16 * d);
#pragma unroll
          for (int s = 0; s < STRIPS; ++s) add_products(scores[s][n], scores[s][n + 1], left[s][d], right);
        }
      if (a.masked)
#pragma unroll
        for (int s = 0; s < STRIPS; ++s)
#pragma unroll
          for (int n = 0; n < tiles; ++n)
#pragma unroll
            for (int e = 0; e < 4; ++e) scores[s][n][e] += bias[8 * n + 2 * (lane % 4) + e % 2];
      if (k0 + COLUMNS > end_key(a, row0) || k0 < first_key(a, row0 + 16 * STRIPS - 1)) {
#pragma unroll
        for (int s = 0; s < STRIPS; ++s)
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const int row = row0 + 16 * s + 8 * r + lane / 4, column = k0 + 2 * (lane % 4);
            const int first = first_key(a, row) - column, last = end_key(a, row) - column;
#pragma unroll
            for (int n = 0; n < tiles; ++n)
#pragma unroll
              for (int e = 0; e < 2; ++e)
                if (8 * n + e >= last || 8 * n + e < first) scores[s][n][2 * r + e] = hidden_score;
          }
      }
      soften(scores, sums, total, top, two, limit);

      std::uint32_t low[STRIPS], high[STRIPS];
      if constexpr (DROPPED)
#pragma unroll
        for (int s = 0; s < STRIPS; ++s)
          draw_by_query<tiles>(dropout, std::uint32_t(at.head) * std::uint32_t(a.S) + std::uint32_t(row0 + 16 * s), k0, lane, low[s],
                               high[s]);
#pragma unroll
      for (int k = 0; k < COLUMNS / 16; ++k) {
        std::uint32_t weights[STRIPS][4];
#pragma unroll
        for (int s = 0; s < STRIPS; ++s) {
          if constexpr (DROPPED)
#pragma unroll
            for (int n = 2 * k; n < 2 * k + 2; ++n)
#pragma unroll
              for (int e = 0; e < 4; ++e)
                if (!keeps(low[s], high[s], n, e)) scores[s][n][e] = 0;
          left_of(weights[s], scores[s], k);
        }
#pragma unroll
        for (int d = 0; d < D / 16; ++d) {
          std::uint32_t right[4];
          load_matrix_x4_transposed(right, values + tile::along(lane) + 16 * k * tile::pitch + 16 * d);
#pragma unroll
          for (int s = 0; s < STRIPS; ++s) add_products(sums[s][2 * d], sums[s][2 * d + 1], weights[s], right);
        }
      }
    }

    // Every warp has read its own queries, so their place takes its results.
#pragma unroll
    for (int s = 0; s < STRIPS; ++s) {
      float inverse[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float all = total[s][r];
        all += __shfl_xor_sync(0xffffffffu, all, 1);
        all += __shfl_xor_sync(0xffffffffu, all, 2);
        const bool blind = top[s][r] < 0.1f * hidden_score && all == 0;
        const int row = row0 + 16 * s + 8 * r + lane / 4;
        inverse[r] = blind ? 0 : a.factor / all;
        if (lane % 4 == 0 && row < a.S)
          pointer<float>(a.lse)[std::int64_t(at.head) * a.S + row] = blind ? -INFINITY : top[s][r] * a.scale + logf(all);
      }
      tile::put(strip + 16 * s * tile::pitch, sums[s], inverse[0], inverse[1], lane);
    }
    __syncwarp();
    tile::template store<16 * STRIPS>(strip, rows_of<bits16>(a.y, b, h, a.D), a.y.row, row0, a.S, a.D, lane);
  }

 private:
  __device__ static void fetch_stage(const attention_arguments& a, bits16* stage, const bits16* key, const bits16* value, int k0) {
    tile::template fetch<COLUMNS, threads>(stage, key, a.k.row, k0, a.T, a.D);
    tile::template fetch<COLUMNS, threads>(stage + COLUMNS * tile::pitch, value, a.v.row, k0, a.T, a.D);
    copy_async_commit();
  }
  /// scores = 2^(two (scores - top)), with new references where a score is far above the old one.
  __device__ static void soften(float (&scores)[STRIPS][tiles][4], float (&sums)[STRIPS][D / 8][4], float (&total)[STRIPS][2],
                                float (&top)[STRIPS][2], float two, float limit) {
    float highest[STRIPS][2];
    bool passed = false;
#pragma unroll
    for (int s = 0; s < STRIPS; ++s)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float x = fmaxf(scores[s][0][2 * r], scores[s][0][2 * r + 1]);
#pragma unroll
        for (int n = 1; n < tiles; ++n) x = fmaxf(x, fmaxf(scores[s][n][2 * r], scores[s][n][2 * r + 1]));
        highest[s][r] = x;
        passed = passed || x > top[s][r] + limit;
      }
    if (__ballot_sync(0xffffffffu, passed) != 0) {
#pragma unroll
      for (int s = 0; s < STRIPS; ++s)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          float x = highest[s][r];
          x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
          x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
          const float next = fmaxf(top[s][r], x), shrink = exp2_fast((top[s][r] - next) * two);
          top[s][r] = next;
          total[s][r] *= shrink;
#pragma unroll
          for (int n = 0; n < D / 8; ++n) {
            sums[s][n][2 * r] *= shrink;
            sums[s][n][2 * r + 1] *= shrink;
          }
        }
    }
#pragma unroll
    for (int s = 0; s < STRIPS; ++s)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float less = top[s][r] < 0.1f * hidden_score ? 0.0f : -top[s][r] * two;
#pragma unroll
        for (int n = 0; n < tiles; ++n)
#pragma unroll
          for (int e = 2 * r; e < 2 * r + 2; ++e) {
            scores[s][n][e] = exp2_fast(fmaf(scores[s][n][e], two, less));
            total[s][r] += scores[s][n][e];
          }
      }
  }
};

}  // namespace isotope::cuda::gpu
