#pragma once
// The gradient of attention for heads of 64 elements by products of warpgroups, for sm_90a alone: the two kernels of
// attention_backward.cuh, where a warpgroup owns 64 rows and multiplies tiles of 64 rows of the other side. Left operands stay in shared
// memory, P and dS in registers.
#include "attention_slopes.cuh"
#include "attention_warpgroup.cuh"

namespace isotope::cuda::gpu {

/// dq and delta.
template <int GROUPS, bool DROPPED> struct attention_hopper_queries {
  static constexpr int D = 64, threads = 128 * GROUPS, rows = 64 * GROUPS, columns = 64, tile_bytes = 128 * columns;

  __device__ static void run(const attention_arguments& a) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int blocks = (a.S + rows - 1) / rows;
    const block_place at = place_of(blockIdx.x, unsigned(blocks), unsigned(a.B * a.H));
    const int b = at.head / a.H, h = at.head % a.H, g = h / (a.H / a.G);
    const int q0 = (blocks - 1 - at.block) * rows, group = GROUPS == 1 ? 0 : warp / 4, group0 = q0 + group * 64, row0 = q0 + warp * 16;
    const bits16 *key = rows_of<const bits16>(a.k, b, g, D), *value = rows_of<const bits16>(a.v, b, g, D);
    unsigned char* own = dynamic_shared();                            // (rows, D): queries, then dy
    unsigned char* stages = own + 2 * 128 * rows;                     // 2 x (keys, values) of (columns, D)
    float* bias = reinterpret_cast<float*>(stages + 4 * tile_bytes);  // of the tile's keys
    const attention_dropout dropout(a);

    const int begin = first_key(a, q0) / columns * columns, end = end_key(a, q0 + rows - 1);
    const int own_begin = first_key(a, group0), own_end = end_key(a, group0 + 63);
    swizzled_tile::fetch<rows, threads>(own, rows_of<const bits16>(a.q, b, h, D), a.q.row, q0, a.S);
    swizzled_tile::fetch<rows, threads>(own + 128 * rows, rows_of<const bits16>(a.dy, b, h, D), a.dy.row, q0, a.S);
    fetch_stage(a, stages, key, value, begin);
    const query_slopes<DROPPED> slopes(a, dropout, b, h, row0, lane);
    const std::uint64_t queries = swizzled_rows(own + group * 64 * 128), gradients = queries + 128 * rows / 16;
    float sums[8][4];
    clear(sums);

    const auto step = [&](auto stage, int k0) {
      copy_async_wait<0>();
      publish();
      __syncthreads();  // the tile is there, and everybody has read the one before it
      if (k0 + columns < end) fetch_stage(a, stages + (1 - stage.value) * 2 * tile_bytes, key, value, k0 + columns);
      if (a.masked) {
#pragma unroll 1
        for (int c = int(threadIdx.x); c < columns; c += threads) bias[c] = mask_of(a, b, k0 + c);
        __syncthreads();
      }
      if (k0 >= own_end || k0 + columns <= own_begin) return;
      const std::uint64_t keys = swizzled_rows(stages + stage.value * 2 * tile_bytes), values = keys + tile_bytes / 16;
      float p[8][4], ds[8][4];
      wgmma_fence();
      multiply_tiles(p, queries, keys);
      multiply_tiles(ds, gradients, values);
      wgmma_commit();
      wgmma_wait<0>();
      slopes.apply(p, ds, bias, k0);
      std::uint32_t weights[4][4];
      weights_of(weights, ds);
      wgmma_fence();
      multiply_weights(sums, weights, keys);
      wgmma_commit();
      wgmma_wait<0>();
    };
    for (int k0 = begin; k0 < end; k0 += 2 * columns) {  // addresses of stages are constants
      step(number<0>{}, k0);
      if (k0 + columns < end) step(number<1>{}, k0 + columns);
    }
    __syncthreads();  // nobody reads queries any more: their place takes the results
    swizzled_tile::store(own + warp * 16 * 128, sums, a.scale, a.scale, rows_of<bits16>(a.dq, b, h, D), a.dq.row, row0, a.S, lane);
  }

 private:
  __device__ static void fetch_stage(const attention_arguments& a, unsigned char* stage, const bits16* key, const bits16* value, int k0) {
    swizzled_tile::fetch<columns, threads>(stage, key, a.k.row, k0, a.T);
    swizzled_tile::fetch<columns, threads>(stage + tile_bytes, value, a.v.row, k0, a.T);
    copy_async_commit();
  }
};

/// dk and dv. Reads delta.
template <int GROUPS, bool DROPPED> struct attention_hopper_keys {
  static constexpr int D = 64, threads = 128 * GROUPS, rows = 64 * GROUPS, columns = 64, tile_bytes = 128 * columns;

  __device__ static void run(const attention_arguments& a) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int blocks = (a.T + rows - 1) / rows;
    const block_place at = place_of(blockIdx.x, unsigned(blocks), unsigned(a.B * a.G));
    const int b = at.head / a.G, g = at.head % a.G;
    const int k0 = at.block * rows, group = GROUPS == 1 ? 0 : warp / 4, group0 = k0 + group * 64,
              row0 = k0 + warp * 16;                                        // the first keys have the most queries
    unsigned char* own = dynamic_shared();                                  // (rows, D): keys, then values
    unsigned char* stages = own + 2 * 128 * rows;                           // 2 x (queries, dy) of (columns, D)
    float* statistics = reinterpret_cast<float*>(stages + 4 * tile_bytes);  // 2 x (-lse, delta) of the tile's queries
    const attention_dropout dropout(a);

    query_walk next(a, g, k0, rows, columns);
    swizzled_tile::fetch<rows, threads>(own, rows_of<const bits16>(a.k, b, g, D), a.k.row, k0, a.T);
    swizzled_tile::fetch<rows, threads>(own + 128 * rows, rows_of<const bits16>(a.v, b, g, D), a.v.row, k0, a.T);
    copy_async_commit();
    query_statistics<columns> held;
    if (next.all > 0) {
      fetch_stage(a, stages, b, next);
      held.fetch(a, b, next);
      held.put(statistics);
    }
    const key_slopes<DROPPED> slopes(a, dropout, b, row0, lane);
    const std::uint64_t keys = swizzled_rows(own + group * 64 * 128), values = keys + 128 * rows / 16;
    float dk[8][4], dv[8][4];
    clear(dk);
    clear(dv);

    const int own_begin = first_query(a, group0), own_end = end_query(a, group0 + 63);
    const auto step = [&](auto stage, int n) {
      const int head = next.head, q0 = next.q0;
      copy_async_wait<0>();
      publish();
      __syncthreads();  // the tile is there, and everybody has read the one before it
      next.next();
      if (n + 1 < next.all) {
        fetch_stage(a, stages + (1 - stage.value) * 2 * tile_bytes, b, next);
        held.fetch(a, b, next);
      }
      if (q0 < own_end && q0 + columns > own_begin) {
        const std::uint64_t queries = swizzled_rows(stages + stage.value * 2 * tile_bytes), gradients = queries + tile_bytes / 16;
        const float* less = statistics + stage.value * 2 * columns;
        float p[8][4], ds[8][4];
        wgmma_fence();
        multiply_tiles(p, keys, queries);
        multiply_tiles(ds, values, gradients);
        wgmma_commit();
        wgmma_wait<0>();
        slopes.apply(p, ds, less, less + columns, q0, drawn_row(a, b, b * a.H + head) + std::uint32_t(q0));
        std::uint32_t weights[4][4], derivatives[4][4];
        weights_of(weights, p);
        weights_of(derivatives, ds);
        wgmma_fence();
        multiply_weights(dv, weights, gradients);
        multiply_weights(dk, derivatives, queries);
        wgmma_commit();
        wgmma_wait<0>();
      }
      if (n + 1 < next.all) held.put(statistics + (1 - stage.value) * 2 * columns);
    };
    for (int n = 0; n < next.all; n += 2) {  // addresses of stages are constants
      step(number<0>{}, n);
      if (n + 1 < next.all) step(number<1>{}, n + 1);
    }
    copy_async_wait<0>();
    __syncthreads();  // nobody reads keys and values any more: their places take the results
    unsigned char* strip = own + warp * 16 * 128;
    swizzled_tile::store(strip, dk, a.scale, a.scale, rows_of<bits16>(a.dk, b, g, D), a.dk.row, row0, a.T, lane);
    swizzled_tile::store(strip + 128 * rows, dv, 1.0f, 1.0f, rows_of<bits16>(a.dv, b, g, D), a.dv.row, row0, a.T, lane);
  }

 private:
  __device__ static void fetch_stage(const attention_arguments& a, unsigned char* stage, int b, const query_walk& w) {
    swizzled_tile::fetch<columns, threads>(stage, rows_of<const bits16>(a.q, b, w.head, D), a.q.row, w.q0, a.S);
    swizzled_tile::fetch<columns, threads>(stage + tile_bytes, rows_of<const bits16>(a.dy, b, w.head, D), a.dy.row, w.q0, a.S);
    copy_async_commit();
  }
};

}  // namespace isotope::cuda::gpu
