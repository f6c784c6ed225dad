#pragma once
// y = dropout(softmax(scale q k^T + mask)) v for heads of 64 elements by products of warpgroups, for sm_90a alone. Each warpgroup owns 64
// queries and walks tiles of keys. Queries, keys and values stay in shared memory; scores, weights and sums are in registers. Blocks of one
// warpgroup, five of them on a multiprocessor, hide each other's latencies best: an H100 takes 1.1 times as long with two warpgroups per
// block, and 1.2 times if a warpgroup multiplies the scores of the next tile while it evaluates exp2, because it needs more registers.
// Source: Shah et al. 2024, arXiv:2407.08608.
#include "attention_softmax.cuh"
#include "attention_warpgroup.cuh"

namespace isotope::cuda::gpu {

template <int GROUPS, int COLUMNS, bool DROPPED> struct attention_hopper_forward {
  static constexpr int D = 64, threads = 128 * GROUPS, rows = 64 * GROUPS, tiles = COLUMNS / 8, tile_bytes = 128 * COLUMNS;
  using softmax = row_softmax<D, 1, tiles>;

  __device__ static void run(const attention_arguments& a) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int blocks = (a.S + rows - 1) / rows;
    const block_place at = place_of(blockIdx.x, unsigned(blocks), unsigned(a.B * a.H));
    const int b = at.head / a.H, h = at.head % a.H, g = h / (a.H / a.G);
    const int q0 = (blocks - 1 - at.block) * rows, group = GROUPS == 1 ? 0 : warp / 4, group0 = q0 + group * 64, row0 = q0 + warp * 16;
    const bits16 *key = rows_of<const bits16>(a.k, b, g, D), *value = rows_of<const bits16>(a.v, b, g, D);
    unsigned char* own = dynamic_shared();                            // (rows, D)
    unsigned char* stages = own + 128 * rows;                         // 2 x (keys, values) of (COLUMNS, D)
    float* bias = reinterpret_cast<float*>(stages + 4 * tile_bytes);  // of the tile's keys, in units of raw scores
    const float two = a.scale * log2_e;
    const attention_dropout dropout(a);

    const int begin = first_key(a, q0) / COLUMNS * COLUMNS, end = end_key(a, q0 + rows - 1);
    const int own_begin = first_key(a, group0), own_end = end_key(a, group0 + 63);
    const int full_begin = first_key(a, group0 + 63), full_end = end_key(a, group0);
    swizzled_tile::fetch<rows, threads>(own, rows_of<const bits16>(a.q, b, h, D), a.q.row, q0, a.S);
    fetch_stage(a, stages, key, value, begin);
    const std::uint64_t queries = swizzled_rows(own + group * 64 * 128);
    softmax s;

    const auto step = [&](auto stage, int k0) {
      copy_async_wait<0>();
      publish();
      __syncthreads();  // the tile is there, and everybody has read the one before it
      if (k0 + COLUMNS < end) fetch_stage(a, stages + (1 - stage.value) * 2 * tile_bytes, key, value, k0 + COLUMNS);
      if (a.masked) {
#pragma unroll 1
        for (int c = int(threadIdx.x); c < COLUMNS; c += threads) {
          const float x = k0 + c < a.T ? load(a.mask, b * a.mask_batch + (k0 + c) * a.mask_key, a.mask_type) / a.scale : hidden_score;
          bias[c] = x < hidden_score ? hidden_score : x;
        }
        __syncthreads();
      }
      if (k0 >= own_end || k0 + COLUMNS <= own_begin) return;
      const std::uint64_t keys = swizzled_rows(stages + stage.value * 2 * tile_bytes), values = keys + tile_bytes / 16;
      typename softmax::scores scores;
      wgmma_fence();
      multiply_tiles(scores[0], queries, keys);
      wgmma_commit();
      wgmma_wait<0>();
      if (a.masked)
#pragma unroll
        for (int n = 0; n < tiles; ++n)
#pragma unroll
          for (int e = 0; e < 4; ++e) scores[0][n][e] += bias[8 * n + 2 * (lane % 4) + e % 2];
      if (k0 + COLUMNS > full_end || k0 < full_begin) s.hide(a, scores, row0, k0, lane);
      s.soften(scores, two);
      if constexpr (DROPPED) {
        std::uint32_t low, high;
        draw_by_query<tiles>(dropout, drawn_row(a, b, at.head) + std::uint32_t(row0), k0, lane, low, high);
#pragma unroll
        for (int n = 0; n < tiles; ++n)
#pragma unroll
          for (int e = 0; e < 4; ++e)
            if (!keeps(low, high, n, e)) scores[0][n][e] = 0;
      }
      std::uint32_t weights[COLUMNS / 16][4];
      weights_of(weights, scores[0]);
      wgmma_fence();
      multiply_weights(s.sums[0], weights, values);
      wgmma_commit();
      wgmma_wait<0>();
    };
    for (int k0 = begin; k0 < end; k0 += 2 * COLUMNS) {  // addresses of stages are constants
      step(number<0>{}, k0);
      if (k0 + COLUMNS < end) step(number<1>{}, k0 + COLUMNS);
    }
    __syncthreads();  // nobody reads queries any more: their place takes the results
    const float2 inverse = s.finish(a, 0, row0, std::int64_t(at.head) * a.S, lane);
    swizzled_tile::store(own + warp * 16 * 128, s.sums[0], inverse.x, inverse.y, rows_of<bits16>(a.y, b, h, D), a.y.row, row0, a.S, lane);
  }

 private:
  __device__ static void fetch_stage(const attention_arguments& a, unsigned char* stage, const bits16* key, const bits16* value, int k0) {
    swizzled_tile::fetch<COLUMNS, threads>(stage, key, a.k.row, k0, a.T);
    swizzled_tile::fetch<COLUMNS, threads>(stage + tile_bytes, value, a.v.row, k0, a.T);
    copy_async_commit();
  }
};

}  // namespace isotope::cuda::gpu
