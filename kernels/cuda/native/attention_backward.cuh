#pragma once
// The gradient of attention on tensor cores, in two kernels without atomics: with P = exp(scale q k^T + mask - lse) and dS = P (dy v^T -
// delta), one kernel owns queries, computes delta = rowsum(dy y) and dq = scale dS k; the other owns keys and computes dv = P^T dy and dk =
// scale dS^T q, everything transposed, over the queries of all heads that the keys serve, in order. Each evaluates the scores of 32 rows of
// the other side at a time, so that P and dS pass from product to product in registers. Bound by shared memory, which every right operand
// passes through, at seven products in all.
#include "attention_slopes.cuh"
#include "attention_tiles.h"

namespace isotope::cuda::gpu {

/// Left operands of a strip of 16 rows: in registers if KEPT, read again for each use otherwise.
template <int D, bool KEPT> struct left_strip {
  const bits16* at;
  std::uint32_t held[KEPT ? D / 16 : 1][4];

  __device__ left_strip(const bits16* rows, int lane) : at(rows + row_tile<D>::along(lane)) {
    if constexpr (KEPT)
#pragma unroll
      for (int d = 0; d < D / 16; ++d) load_matrix_x4(held[d], at + 16 * d);
  }
  __device__ void read(std::uint32_t (&a)[4], int d) const {
    if constexpr (KEPT)
#pragma unroll
      for (int i = 0; i < 4; ++i) a[i] = held[d][i];
    else load_matrix_x4(a, at + 16 * d);
  }
};
/// x += left times rows of the tile, for N x 8 rows from `rows` on.
template <int D, int N, bool KEPT>
__device__ inline void add_scores(float (&x)[N][4], const left_strip<D, KEPT>& left, const bits16* rows, int lane) {
  using tile = row_tile<D>;
#pragma unroll
  for (int d = 0; d < D / 16; ++d) {
    std::uint32_t a[4];
    left.read(a, d);
#pragma unroll
    for (int n = 0; n < N; n += 2) {
      std::uint32_t right[4];
      load_matrix_x4(right, rows + tile::across(lane) + 8 * n * tile::pitch + 16 * d);
      add_products(x[n], x[n + 1], a, right);
    }
  }
}
/// sums += weights times the tile, for N x 8 of its rows from `rows` on.
template <int D, int N>
__device__ inline void add_rows(float (&sums)[D / 8][4], const float (&weights)[N][4], const bits16* rows, int lane) {
  using tile = row_tile<D>;
#pragma unroll
  for (int k = 0; k < N / 2; ++k) {
    std::uint32_t a[4];
    left_of(a, weights, k);
#pragma unroll
    for (int d = 0; d < D / 16; ++d) {
      std::uint32_t right[4];
      load_matrix_x4_transposed(right, rows + tile::along(lane) + 16 * k * tile::pitch + 16 * d);
      add_products(sums[2 * d], sums[2 * d + 1], a, right);
    }
  }
}

/// dq and delta.
template <int D, int WARPS, int COLUMNS, int PART, bool DROPPED> struct attention_backward_queries {
  using tile = row_tile<D>;
  static constexpr int threads = 32 * WARPS, rows = 16 * WARPS, part = PART, N = part / 8;
  static constexpr int stage_elements = 2 * COLUMNS * tile::pitch;

  __device__ static void run(const attention_arguments& a) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int blocks = (a.S + rows - 1) / rows;
    const block_place at = place_of(blockIdx.x, unsigned(blocks), unsigned(a.B * a.H));
    const int b = at.head / a.H, h = at.head % a.H, g = h / (a.H / a.G);
    const int q0 = (blocks - 1 - at.block) * rows, row0 = q0 + warp * 16;
    const bits16 *key = rows_of<const bits16>(a.k, b, g, a.D), *value = rows_of<const bits16>(a.v, b, g, a.D);
    bits16* queries = reinterpret_cast<bits16*>(dynamic_shared());        // (rows, D)
    bits16* gradients = queries + rows * tile::pitch;                     // (rows, D)
    bits16* stages = gradients + rows * tile::pitch;                      // 2 x (keys, values) of (COLUMNS, D)
    float* bias = reinterpret_cast<float*>(stages + 2 * stage_elements);  // of the tile's keys
    const attention_dropout dropout(a);

    const int begin = first_key(a, q0) / COLUMNS * COLUMNS, end = end_key(a, q0 + rows - 1);
    tile::template fetch_running<rows, threads>(queries, rows_of<const bits16>(a.q, b, h, a.D), a.q.row, q0, a.S, a.D);
    tile::template fetch_running<rows, threads>(gradients, rows_of<const bits16>(a.dy, b, h, a.D), a.dy.row, q0, a.S, a.D);
    copy_async_commit();
    fetch_stage(a, stages, key, value, begin);
    copy_async_wait<1>();
    __syncthreads();
    bits16 *strip = queries + warp * 16 * tile::pitch, *gradient_strip = gradients + warp * 16 * tile::pitch;
    const left_strip<D, (D <= 96)> left(strip, lane), gradient(gradient_strip, lane);
    const query_slopes<DROPPED> slopes(a, dropout, b, h, row0, lane);
    float sums[D / 8][4];
    clear(sums);

    const int own_begin = first_key(a, row0), own_end = end_key(a, row0 + 15);
    int stage = 0;
    for (int k0 = begin; k0 < end; k0 += COLUMNS, stage ^= 1) {
      copy_async_wait<0>();
      __syncthreads();  // the tile is there, and everybody has read the one before it
      if (k0 + COLUMNS < end) fetch_stage(a, stages + (stage ^ 1) * stage_elements, key, value, k0 + COLUMNS);
      if (a.masked) {
#pragma unroll 1
        for (int c = int(threadIdx.x); c < COLUMNS; c += threads) bias[c] = mask_of(a, b, k0 + c);
        __syncthreads();
      }
#pragma unroll 1
      for (int c = 0; c < COLUMNS; c += part) {
        if (k0 + c >= own_end || k0 + c + part <= own_begin) continue;
        const bits16 *keys = stages + stage * stage_elements + c * tile::pitch, *values = keys + COLUMNS * tile::pitch;
        float p[N][4], ds[N][4];
        clear(p);
        clear(ds);
        add_scores<D, N>(p, left, keys, lane);
        add_scores<D, N>(ds, gradient, values, lane);
        slopes.apply(p, ds, bias + c, k0 + c);
        add_rows<D, N>(sums, ds, keys, lane);
      }
    }
    // Every warp has read its own queries, so their place takes its results.
    __syncwarp();
    tile::put(strip, sums, a.scale, a.scale, lane);
    __syncwarp();
    tile::template store<16>(strip, rows_of<bits16>(a.dq, b, h, a.D), a.dq.row, row0, a.S, a.D, lane);
  }

 private:
  __device__ static void fetch_stage(const attention_arguments& a, bits16* stage, const bits16* key, const bits16* value, int k0) {
    tile::template fetch_running<COLUMNS, threads>(stage, key, a.k.row, k0, a.T, a.D);
    tile::template fetch_running<COLUMNS, threads>(stage + COLUMNS * tile::pitch, value, a.v.row, k0, a.T, a.D);
    copy_async_commit();
  }
};

/// dk and dv. Reads delta.
template <int D, int WARPS, int COLUMNS, int PART, bool DROPPED> struct attention_backward_keys {
  using tile = row_tile<D>;
  static constexpr int threads = 32 * WARPS, rows = 16 * WARPS, part = PART, N = part / 8;
  static constexpr int stage_elements = 2 * COLUMNS * tile::pitch;
  static_assert(COLUMNS <= threads, "one thread holds the statistics of a query");

  __device__ static void run(const attention_arguments& a) {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int blocks = (a.T + rows - 1) / rows;
    const block_place at = place_of(blockIdx.x, unsigned(blocks), unsigned(a.B * a.G));
    const int b = at.head / a.G, g = at.head % a.G;
    const int k0 = at.block * rows, row0 = k0 + warp * 16;                      // the first keys have the most queries, so they come first
    bits16* keys = reinterpret_cast<bits16*>(dynamic_shared());                 // (rows, D)
    bits16* values = keys + rows * tile::pitch;                                 // (rows, D)
    bits16* stages = values + rows * tile::pitch;                               // 2 x (queries, dy) of (COLUMNS, D)
    float* statistics = reinterpret_cast<float*>(stages + 2 * stage_elements);  // 2 x (-lse, delta) of the tile's queries
    const attention_dropout dropout(a);

    query_walk next(a, g, k0, rows, COLUMNS);
    tile::template fetch_running<rows, threads>(keys, rows_of<const bits16>(a.k, b, g, a.D), a.k.row, k0, a.T, a.D);
    tile::template fetch_running<rows, threads>(values, rows_of<const bits16>(a.v, b, g, a.D), a.v.row, k0, a.T, a.D);
    copy_async_commit();
    query_statistics<COLUMNS> held;
    if (next.all > 0) {
      fetch_stage(a, stages, b, next);
      held.fetch(a, b, next);
      held.put(statistics);
    }
    copy_async_wait<0>();
    __syncthreads();
    bits16 *strip = keys + warp * 16 * tile::pitch, *value_strip = values + warp * 16 * tile::pitch;
    const left_strip<D, (D <= 80)> left(strip, lane), value(value_strip, lane);
    const key_slopes<DROPPED> slopes(a, dropout, b, row0, lane);
    float dk[D / 8][4], dv[D / 8][4];
    clear(dk);
    clear(dv);

    const int own_begin = first_query(a, row0), own_end = end_query(a, row0 + 15);
    int stage = 0;
    for (int n = 0; n < next.all; ++n, stage ^= 1) {
      const int head = next.head, q0 = next.q0;
      copy_async_wait<0>();
      __syncthreads();  // the tile is there, and everybody has read the one before it
      next.next();
      if (n + 1 < next.all) {
        fetch_stage(a, stages + (stage ^ 1) * stage_elements, b, next);
        held.fetch(a, b, next);
      }
      const float* less = statistics + stage * 2 * COLUMNS;
      const std::uint32_t first = drawn_row(a, b, b * a.H + head);
#pragma unroll 1
      for (int c = 0; c < COLUMNS; c += part) {
        if (q0 + c >= own_end || q0 + c + part <= own_begin) continue;
        const bits16 *queries = stages + stage * stage_elements + c * tile::pitch, *gradients = queries + COLUMNS * tile::pitch;
        float p[N][4], ds[N][4];
        clear(p);
        clear(ds);
        add_scores<D, N>(p, left, queries, lane);
        add_scores<D, N>(ds, value, gradients, lane);
        slopes.apply(p, ds, less + c, less + COLUMNS + c, q0 + c, first + std::uint32_t(q0 + c));
        add_rows<D, N>(dv, p, gradients, lane);
        add_rows<D, N>(dk, ds, queries, lane);
      }
      if (n + 1 < next.all) held.put(statistics + (stage ^ 1) * 2 * COLUMNS);
    }
    // Every warp has read its own keys and values, so their places take its results.
    __syncwarp();
    tile::put(strip, dk, a.scale, a.scale, lane);
    tile::put(value_strip, dv, 1.0f, 1.0f, lane);
    __syncwarp();
    tile::template store<16>(strip, rows_of<bits16>(a.dk, b, g, a.D), a.dk.row, row0, a.T, a.D, lane);
    tile::template store<16>(value_strip, rows_of<bits16>(a.dv, b, g, a.D), a.dv.row, row0, a.T, a.D, lane);
  }

 private:
  __device__ static void fetch_stage(const attention_arguments& a, bits16* stage, int b, const query_walk& w) {
    tile::template fetch_running<COLUMNS, threads>(stage, rows_of<const bits16>(a.q, b, w.head, a.D), a.q.row, w.q0, a.S, a.D);
    tile::template fetch_running<COLUMNS, threads>(stage + COLUMNS * tile::pitch, rows_of<const bits16>(a.dy, b, w.head, a.D), a.dy.row,
                                                   w.q0, a.S, a.D);
    copy_async_commit();
  }
};

}  // namespace isotope::cuda::gpu
