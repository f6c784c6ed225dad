#pragma once
// y = softmax(scale q k^T) v for heads of 64 elements by products of warpgroups, for sm_90a alone. Each warpgroup owns 64 queries and all
// of the block walk tiles of 64 keys. Queries, keys and values stay in shared memory; scores, weights and sums are in registers. Bound by
// exp2, which takes as long as both products of a tile: warpgroups of several blocks overlap them. Source: Shah et al. 2024,
// arXiv:2407.08608.
#include "attention_softmax.cuh"
#include "attention_warpgroup.cuh"

namespace isotope::cuda::gpu {

template <int GROUPS> struct attention_hopper_forward {
  static constexpr int D = 64, threads = 128 * GROUPS, rows = 64 * GROUPS, columns = 64;
  static constexpr int tile_bytes = 128 * columns;

  __device__ static void run(const attention_arguments& a) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int blocks = (a.S + rows - 1) / rows;
    const block_place at = place_of(blockIdx.x, unsigned(blocks), unsigned(a.B * a.H));
    const int b = at.head / a.H, h = at.head % a.H, g = h / (a.H / a.G);
    const int q0 = (blocks - 1 - at.block) * rows, group0 = q0 + warp / 4 * 64, row0 = q0 + warp * 16;
    const bits16 *key = rows_of<const bits16>(a.k, b, g, D), *value = rows_of<const bits16>(a.v, b, g, D);
    unsigned char* own = dynamic_shared();     // (rows, D)
    unsigned char* stages = own + 128 * rows;  // 2 x (keys, values) of (columns, D)
    const float two = a.scale * log2_e;

    const int begin = first_key(a, q0) / columns * columns, end = end_key(a, q0 + rows - 1);
    const int own_begin = first_key(a, group0), own_end = end_key(a, group0 + 63);
    fetch<rows>(own, rows_of<const bits16>(a.q, b, h, D), a.q.row, q0, a.S);
    fetch_stage(a, stages, key, value, begin);
    const std::uint64_t queries = swizzled_rows(own + warp / 4 * 64 * 128);
    row_softmax<D, 1, columns / 8> softmax;

    int stage = 0;
    for (int k0 = begin; k0 < end; k0 += columns, stage ^= 1) {
      copy_async_wait<0>();
      publish();
      __syncthreads();  // the tile is there, and everybody has read the one before it
      if (k0 + columns < end) fetch_stage(a, stages + (stage ^ 1) * 2 * tile_bytes, key, value, k0 + columns);
      if (k0 >= own_end || k0 + columns <= own_begin) continue;
      const std::uint64_t keys = swizzled_rows(stages + stage * 2 * tile_bytes), values = keys + tile_bytes / 16;
      typename decltype(softmax)::scores scores;
      products_begin();
#pragma unroll
      for (int d = 0; d < D / 16; ++d) multiply_rows(scores[0], queries + 2 * d, keys + 2 * d, d > 0);
      products_commit();
      products_wait<0>();
      if (k0 + columns > end_key(a, group0) || k0 < first_key(a, group0 + 63)) softmax.hide(a, scores, row0, k0, lane);
      softmax.soften(scores, two);
      std::uint32_t weights[columns / 16][4];
#pragma unroll
      for (int k = 0; k < columns / 16; ++k) left_of(weights[k], scores[0], k);
      products_begin();
#pragma unroll
      for (int k = 0; k < columns / 16; ++k) multiply_columns(softmax.sums[0], weights[k], values + 16 * 128 / 16 * k);
      products_commit();
      products_wait<0>();
    }
    __syncthreads();  // nobody reads queries any more: their place takes the results
    unsigned char* strip = own + warp * 16 * 128;
    const float2 inverse = softmax.finish(a, 0, row0, std::int64_t(at.head) * a.S, lane);
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      const int place = swizzled(lane / 4, n) + lane % 4 * 4;
      const float(&x)[4] = softmax.sums[0][n];
      *reinterpret_cast<std::uint32_t*>(strip + place) = bf16_pair(x[0] * inverse.x, x[1] * inverse.x);
      *reinterpret_cast<std::uint32_t*>(strip + 8 * 128 + place) = bf16_pair(x[2] * inverse.y, x[3] * inverse.y);
    }
    __syncwarp();
    bits16* y = rows_of<bits16>(a.y, b, h, D);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int n = lane + 32 * i, r = n / 8, c = n % 8;
      if (row0 + r < a.S)
        *reinterpret_cast<uint4*>(y + (row0 + r) * a.y.row + 8 * c) = *reinterpret_cast<const uint4*>(strip + swizzled(r, c));
    }
  }

 private:
  template <int ROWS>
  __device__ static void fetch(unsigned char* tile, const bits16* base, std::int64_t stride, int first, int rows_there) {
#pragma unroll
    for (int i = 0; i < ROWS * 8 / threads; ++i) {
      const int n = int(threadIdx.x) + i * threads, r = n / 8, c = n % 8;
      const bool valid = first + r < rows_there;
      copy_async_16(tile + swizzled(r, c), valid ? base + (first + r) * stride + 8 * c : base, valid);
    }
  }
  __device__ static void fetch_stage(const attention_arguments& a, unsigned char* stage, const bits16* key, const bits16* value, int k0) {
    fetch<columns>(stage, key, a.k.row, k0, a.T);
    fetch<columns>(stage + tile_bytes, value, a.v.row, k0, a.T);
    copy_async_commit();
  }
};

}  // namespace isotope::cuda::gpu
