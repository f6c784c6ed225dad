#pragma once
// The gradient of attention on tensor cores, in two kernels without atomics: with P = exp(scale q k^T + mask - lse) and dS = P (dy v^T -
// delta), one kernel owns queries, computes delta = rowsum(dy y) and dq = scale dS k; the other owns keys and computes dv = P^T dy and dk =
// scale dS^T q, everything transposed, over the queries of all heads that the keys serve, in order. Each evaluates the scores of 32 rows of
// the other side at a time, so that P and dS pass from product to product in registers. Bound by shared memory, which every right operand
// passes through, at seven products in all.
#include "../attention/fragments.cuh"
#include "attention_tiles.h"

namespace isotope::cuda::gpu {

/// -lse in base-2 units; a query that sees no key has weights of 0.
__device__ inline float less_lse(float lse) { return lse == -INFINITY ? hidden_score : -lse * log2_e; }
/// The mask of a key in base-2 units.
__device__ inline float mask_of(const attention_arguments& a, int b, int t) {
  if (t >= a.T) return hidden_score;
  const float x = load(a.mask, b * a.mask_batch + t * a.mask_key, a.mask_type) * log2_e;
  return x < hidden_score ? hidden_score : x;
}
template <int N> __device__ inline void clear(float (&x)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n) x[n][0] = x[n][1] = x[n][2] = x[n][3] = 0;
}
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
    const float two = a.scale * log2_e;
    const attention_dropout dropout(a);

    const int begin = first_key(a, q0) / COLUMNS * COLUMNS, end = end_key(a, q0 + rows - 1);
    tile::template fetch<rows, threads>(queries, rows_of<const bits16>(a.q, b, h, a.D), a.q.row, q0, a.S, a.D);
    tile::template fetch<rows, threads>(gradients, rows_of<const bits16>(a.dy, b, h, a.D), a.dy.row, q0, a.S, a.D);
    copy_async_commit();
    fetch_stage(a, stages, key, value, begin);
    copy_async_wait<1>();
    __syncthreads();
    bits16 *strip = queries + warp * 16 * tile::pitch, *gradient_strip = gradients + warp * 16 * tile::pitch;
    const left_strip<D, (D <= 96)> left(strip, lane), gradient(gradient_strip, lane);
    float less[2], mean[2];
    const float own_mean = mean_of(a, b, h, gradient_strip, row0, std::int64_t(at.head) * a.S, lane);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = row0 + 8 * r + lane / 4;
      mean[r] = __shfl_sync(0xffffffffu, own_mean, 2 * (8 * r + lane / 4));
      less[r] = row < a.S ? less_lse(pointer<const float>(a.lse)[std::int64_t(at.head) * a.S + row]) : hidden_score;
    }
    float sums[D / 8][4];
    clear(sums);

    const int own_begin = first_key(a, row0), own_end = end_key(a, row0 + 15);
    int stage = 0;
    for (int k0 = begin; k0 < end; k0 += COLUMNS, stage ^= 1) {
      copy_async_wait<0>();
      __syncthreads();  // the tile is there, and everybody has read the one before it
      if (k0 + COLUMNS < end) fetch_stage(a, stages + (stage ^ 1) * stage_elements, key, value, k0 + COLUMNS);
      if (a.masked) {
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
        std::uint32_t low = 0, high = 0;
        if constexpr (DROPPED)
          draw_by_query<N>(dropout, std::uint32_t(at.head) * std::uint32_t(a.S) + std::uint32_t(row0), k0 + c, lane, low, high);
        const bool crosses = k0 + c + part > end_key(a, row0) || k0 + c < first_key(a, row0 + 15);
#pragma unroll
        for (int n = 0; n < N; ++n)
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            float x = fmaf(p[n][e], two, less[e / 2]);
            if (a.masked) x += bias[c + 8 * n + 2 * (lane % 4) + e % 2];
            if (crosses) {
              const int row = row0 + 8 * (e / 2) + lane / 4, column = k0 + c + 8 * n + 2 * (lane % 4) + e % 2;
              if (column >= end_key(a, row) || column < first_key(a, row)) x = hidden_score;
            }
            float slope = ds[n][e];
            if constexpr (DROPPED) slope = keeps(low, high, n, e) ? slope * a.factor : 0.0f;
            ds[n][e] = exp2_fast(x) * (slope - mean[e / 2]);
          }
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
    tile::template fetch<COLUMNS, threads>(stage, key, a.k.row, k0, a.T, a.D);
    tile::template fetch<COLUMNS, threads>(stage + COLUMNS * tile::pitch, value, a.v.row, k0, a.T, a.D);
    copy_async_commit();
  }
  /// The sum of dy y of row lane / 2 of the warp; writes it to delta, too.
  __device__ static float mean_of(const attention_arguments& a, int b, int h, const bits16* dy, int row0, std::int64_t first, int lane) {
    const int row = row0 + lane / 2;
    const bits16* y = rows_of<const bits16>(a.y, b, h, a.D) + row * a.y.row;
    float sum = 0;
    if (row < a.S)
      for (int c = lane % 2 * 8; c < a.D; c += 16) {
        const uint4 x = *reinterpret_cast<const uint4*>(y + c), z = *reinterpret_cast<const uint4*>(dy + lane / 2 * tile::pitch + c);
        sum += (product(x.x, z.x) + product(x.y, z.y)) + (product(x.z, z.z) + product(x.w, z.w));
      }
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    if (row < a.S && lane % 2 == 0) pointer<float>(a.delta)[first + row] = sum;
    return sum;
  }
  __device__ static float product(std::uint32_t x, std::uint32_t y) {
    return fmaf(__uint_as_float(x << 16), __uint_as_float(y << 16), __uint_as_float(x & 0xffff0000u) * __uint_as_float(y & 0xffff0000u));
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
    const int blocks = (a.T + rows - 1) / rows, group = a.H / a.G;
    const block_place at = place_of(blockIdx.x, unsigned(blocks), unsigned(a.B * a.G));
    const int b = at.head / a.G, g = at.head % a.G;
    const int k0 = at.block * rows, row0 = k0 + warp * 16;                      // the first keys have the most queries, so they come first
    bits16* keys = reinterpret_cast<bits16*>(dynamic_shared());                 // (rows, D)
    bits16* values = keys + rows * tile::pitch;                                 // (rows, D)
    bits16* stages = values + rows * tile::pitch;                               // 2 x (queries, dy) of (COLUMNS, D)
    float* statistics = reinterpret_cast<float*>(stages + 2 * stage_elements);  // 2 x (-lse, delta) of the tile's queries
    const float two = a.scale * log2_e;
    const attention_dropout dropout(a);

    const int begin = first_query(a, k0) / COLUMNS * COLUMNS, end = end_query(a, k0 + rows - 1);
    const int tiles = begin < end ? (end - begin + COLUMNS - 1) / COLUMNS : 0, all = tiles * group;
    tile::template fetch<rows, threads>(keys, rows_of<const bits16>(a.k, b, g, a.D), a.k.row, k0, a.T, a.D);
    tile::template fetch<rows, threads>(values, rows_of<const bits16>(a.v, b, g, a.D), a.v.row, k0, a.T, a.D);
    copy_async_commit();
    float held_less = hidden_score, held_mean = 0;
    int next_head = g * group, next_q = begin;
    if (all > 0) {
      fetch_stage(a, stages, b, next_head, next_q);
      hold(a, b, next_head, next_q, held_less, held_mean);
      put(statistics, held_less, held_mean);
    }
    copy_async_wait<0>();
    __syncthreads();
    bits16 *strip = keys + warp * 16 * tile::pitch, *value_strip = values + warp * 16 * tile::pitch;
    const left_strip<D, (D <= 80)> left(strip, lane), value(value_strip, lane);
    float bias[2] = {0, 0};
    if (a.masked) {
      bias[0] = mask_of(a, b, row0 + lane / 4);
      bias[1] = mask_of(a, b, row0 + lane / 4 + 8);
    }
    float dk[D / 8][4], dv[D / 8][4];
    clear(dk);
    clear(dv);

    const int own_begin = first_query(a, row0), own_end = end_query(a, row0 + 15), full_begin = first_query(a, row0 + 15),
              full_end = end_query(a, row0);
    int stage = 0;
    for (int n = 0; n < all; ++n, stage ^= 1) {
      const int head = next_head, q0 = next_q;
      copy_async_wait<0>();
      __syncthreads();  // the tile is there, and everybody has read the one before it
      next_q += COLUMNS;
      if (next_q >= end) {
        next_q = begin;
        ++next_head;
      }
      if (n + 1 < all) {
        fetch_stage(a, stages + (stage ^ 1) * stage_elements, b, next_head, next_q);
        hold(a, b, next_head, next_q, held_less, held_mean);
      }
      const float* less = statistics + stage * 2 * COLUMNS;
#pragma unroll 1
      for (int c = 0; c < COLUMNS; c += part) {
        if (q0 + c >= own_end || q0 + c + part <= own_begin) continue;
        const bits16 *queries = stages + stage * stage_elements + c * tile::pitch, *gradients = queries + COLUMNS * tile::pitch;
        float p[N][4], ds[N][4];
        clear(p);
        clear(ds);
        add_scores<D, N>(p, left, queries, lane);
        add_scores<D, N>(ds, value, gradients, lane);
        std::uint32_t marks[4] = {0, 0, 0, 0};
        if constexpr (DROPPED)
          draw_by_key<N>(dropout, std::uint32_t(b * a.H + head) * std::uint32_t(a.S) + std::uint32_t(q0 + c), row0, lane, marks);
        const bool crosses = q0 + c < full_begin || q0 + c + part > full_end;
#pragma unroll
        for (int i = 0; i < N; ++i) {
          const int column = c + 8 * i + 2 * (lane % 4);
          const float2 lse = *reinterpret_cast<const float2*>(less + column),
                       mean = *reinterpret_cast<const float2*>(less + COLUMNS + column);
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            float x = fmaf(p[i][e], two, e % 2 ? lse.y : lse.x);
            if (a.masked) x += bias[e / 2];
            if (crosses) {
              const int key = row0 + 8 * (e / 2) + lane / 4, query = q0 + column + e % 2;
              if (query < first_query(a, key) || query >= end_query(a, key)) x = hidden_score;
            }
            const float weight = exp2_fast(x), less_mean = e % 2 ? mean.y : mean.x;
            float slope = ds[i][e], share = weight;
            if constexpr (DROPPED) {
              const bool keep = (marks[e] >> (4 * i) & 1u) != 0;
              slope = keep ? slope * a.factor : 0.0f;
              share = keep ? weight * a.factor : 0.0f;
            }
            p[i][e] = share;
            ds[i][e] = weight * (slope - less_mean);
          }
        }
        add_rows<D, N>(dv, p, gradients, lane);
        add_rows<D, N>(dk, ds, queries, lane);
      }
      if (n + 1 < all) put(statistics + (stage ^ 1) * 2 * COLUMNS, held_less, held_mean);
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
  __device__ static void fetch_stage(const attention_arguments& a, bits16* stage, int b, int head, int q0) {
    tile::template fetch<COLUMNS, threads>(stage, rows_of<const bits16>(a.q, b, head, a.D), a.q.row, q0, a.S, a.D);
    tile::template fetch<COLUMNS, threads>(stage + COLUMNS * tile::pitch, rows_of<const bits16>(a.dy, b, head, a.D), a.dy.row, q0, a.S,
                                           a.D);
    copy_async_commit();
  }
  /// The statistics of a query of a tile, on their way to shared memory.
  __device__ static void hold(const attention_arguments& a, int b, int head, int q0, float& less, float& mean) {
    const int row = q0 + int(threadIdx.x);
    if (int(threadIdx.x) >= COLUMNS) return;
    const std::int64_t i = (std::int64_t(b) * a.H + head) * a.S + row;
    less = row < a.S ? pointer<const float>(a.lse)[i] : -INFINITY;
    mean = row < a.S ? pointer<const float>(a.delta)[i] : 0.0f;
  }
  __device__ static void put(float* statistics, float less, float mean) {
    if (int(threadIdx.x) >= COLUMNS) return;
    statistics[threadIdx.x] = less_lse(less);
    statistics[COLUMNS + threadIdx.x] = mean;
  }
};

}  // namespace isotope::cuda::gpu
