#pragma once
// y = dropout(softmax(scale q k^T + mask)) v on tensor cores. A warp owns strips of 16 queries, whose fragments stay in registers; the
// weights of a tile become the left operand of the second product in their registers. The next tile of keys and values is copied while a
// tile is processed. Bound by shared memory, which every right operand passes through, and by exp2. Source: Dao 2023, arXiv:2307.08691.
#include "attention_softmax.cuh"
#include "attention_tiles.h"

namespace isotope::cuda::gpu {

template <int D, int WARPS, int STRIPS, int COLUMNS, bool DROPPED> struct attention_forward {
  using tile = row_tile<D>;
  static constexpr int threads = 32 * WARPS, rows = 16 * STRIPS * WARPS, tiles = COLUMNS / 8;

  __device__ static void run(const attention_arguments& a) {
    const int blocks = (a.S + rows - 1) / rows;
    const block_place at = place_of(blockIdx.x, unsigned(blocks), unsigned(a.B * a.H));
    run(a, at.head, (blocks - 1 - at.block) * rows);
  }
  /// head: b H + h; q0: the first query of the block.
  __device__ static void run(const attention_arguments& a, int head, int q0) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int b = head / a.H, h = head % a.H, g = h / (a.H / a.G), row0 = q0 + warp * 16 * STRIPS;
    const bits16 *query = rows_of<const bits16>(a.q, b, h, a.D), *key = rows_of<const bits16>(a.k, b, g, a.D),
                 *value = rows_of<const bits16>(a.v, b, g, a.D);
    bits16* own = reinterpret_cast<bits16*>(dynamic_shared());                   // (rows, D)
    bits16* stages = own + rows * tile::pitch;                                   // 2 x (keys, values) of (COLUMNS, D)
    float* bias = reinterpret_cast<float*>(stages + 4 * COLUMNS * tile::pitch);  // in units of raw scores
    const float two = a.scale * log2_e;
    const attention_dropout dropout(a);
    const std::uint32_t drawn = drawn_row(a, b, head);

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

    row_softmax<D, STRIPS, tiles> softmax;
    int stage = 0;
    for (int k0 = begin; k0 < end; k0 += COLUMNS, stage ^= 1) {
      copy_async_wait<0>();
      __syncthreads();  // the tile is there, and everybody has read the one before it
      if (k0 + COLUMNS < end) fetch_stage(a, stages + (stage ^ 1) * 2 * COLUMNS * tile::pitch, key, value, k0 + COLUMNS);
      if (a.masked) {
#pragma unroll 1
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
      if (k0 + COLUMNS > end_key(a, row0) || k0 < first_key(a, row0 + 16 * STRIPS - 1)) softmax.hide(a, scores, row0, k0, lane);
      softmax.soften(scores, two);

      std::uint32_t low[STRIPS], high[STRIPS];
      if constexpr (DROPPED)
#pragma unroll
        for (int s = 0; s < STRIPS; ++s) draw_by_query<tiles>(dropout, drawn + std::uint32_t(row0 + 16 * s), k0, lane, low[s], high[s]);
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
          for (int s = 0; s < STRIPS; ++s) add_products(softmax.sums[s][2 * d], softmax.sums[s][2 * d + 1], weights[s], right);
        }
      }
    }

    // Every warp has read its own queries, so their place takes its results.
#pragma unroll
    for (int s = 0; s < STRIPS; ++s) {
      const float2 inverse = softmax.finish(a, s, row0 + 16 * s, std::int64_t(head) * a.S, lane);
      tile::put(strip + 16 * s * tile::pitch, softmax.sums[s], inverse.x, inverse.y, lane);
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
};

}  // namespace isotope::cuda::gpu
