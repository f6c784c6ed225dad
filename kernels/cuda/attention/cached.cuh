#pragma once
// Attention of one token to the cached keys and values of its sequence. A split of the positions is the work of a block: chunks of adjacent positions, one for
// each group of LANES threads, which hold a key or value together, 16 bytes each. A group keeps its own maximum and sums; they are combined in a fixed order,
// over the groups of a warp, then the warps, then the splits, so that a result depends on nothing but its own query, keys and values.
#include "device/early.cuh"
#include "rows/vectors.cuh"

#include "cached.h"

namespace isotope::cuda::gpu {

inline constexpr int cached_warps = cached_threads / 32;
inline constexpr unsigned cached_lanes = 0xffffffffu;

/// The maximum of scores, in units of log2, the sum of their powers of two and of values times these.
struct cached_top {
  float top, total;
};
/// The number that scores are reduced by: not minus infinity, so that scores of minus infinity weigh nothing.
__device__ inline float cached_base(float top) { return top == -__uint_as_float(0x7f800000u) ? 0.0f : top; }

/// What a block computes of: a row, a key-value head, up to QUERIES of its query heads, and a split.
template <int QUERIES> struct cached_place {
  std::int64_t n, slot, own;
  int g, first_head, split;
  bool idle;
  __device__ explicit cached_place(const cached_heads& a) {
    int i = int(blockIdx.x);  // divisions of 64 bits would take longer than a read of the cache
    split = i & (a.splits - 1);
    i /= a.splits;
    first_head = a.blocks == 1 ? 0 : i % a.blocks * QUERIES;
    g = a.blocks == 1 ? i : i / a.blocks;
    n = blockIdx.y;
    slot = pointer<const std::int32_t>(a.sequence)[n], own = pointer<const std::int32_t>(a.position)[n];
    idle = slot < 0 || slot >= a.B || own < 0 || own >= a.T;
  }
  __device__ std::int64_t head(const cached_heads& a, int r) const { return std::int64_t(g) * a.repeats + first_head + r; }
  /// The element of y that is column c of query head r.
  __device__ std::int64_t result(const cached_heads& a, int r, int c) const { return n * a.y_stride + head(a, r) * a.D + c; }
  __device__ bool has(const cached_heads& a, int r) const { return first_head + r < a.repeats; }
};

/// The sums of a block, in shared memory.
template <int COLUMNS, int QUERIES> struct cached_sums {
  float sum[QUERIES][COLUMNS];
  cached_top of[QUERIES];
};

/// Reads keys and values from the caches alone.
struct cached_rows_in_cache {
  __device__ std::int64_t row_of(std::int64_t) const { return -1; }
};

template <int T, int LANES, int QUERIES> struct cached_attention {
  static constexpr int run = vector_elems<T>, columns = LANES * run, groups = 32 / LANES, chunk = cached_warps * groups,
                       ahead = QUERIES == 1 ? 4 : 2;

  float q[QUERIES][run], sum[QUERIES][run];
  cached_top of[QUERIES];
  int column, member;  // member: of the block's groups

  __device__ cached_attention() {
    column = int(threadIdx.x % LANES) * run, member = int(threadIdx.x / LANES);
#pragma unroll
    for (int r = 0; r < QUERIES; ++r) {
      of[r] = {-__uint_as_float(0x7f800000u), 0.0f};
#pragma unroll
      for (int j = 0; j < run; ++j) q[r][j] = sum[r][j] = 0.0f;
    }
  }
  __device__ void load_queries(const cached_heads& a, const cached_place<QUERIES>& p) {
#pragma unroll
    for (int r = 0; r < QUERIES; ++r)
      if (column < a.D && p.has(a, r)) unpack<T>(*pointer<const uint4>(at(a.q, p.n * a.q_stride + p.head(a, r) * a.D + column)), q[r]);
  }
  __device__ static std::uint64_t at(std::uint64_t base, std::int64_t i) { return base + std::uint64_t(i * element_bytes<T>); }

  /// The first of the keys that the query sees, and the first chunk of the split that has some of them.
  __device__ static std::int64_t first_key(const cached_heads& a, const cached_place<QUERIES>& p) {
    return a.window != 0 && p.own >= a.window ? p.own + 1 - a.window : 0;
  }
  __device__ static std::int64_t first_chunk(const cached_heads& a, const cached_place<QUERIES>& p) {
    const std::int64_t c = first_key(a, p) / chunk;
    return c + ((p.split - c) & (a.splits - 1));
  }
  /// Starts reading the keys and values of the split into the L2 cache.
  __device__ void prefetch(const cached_heads& a, const cached_place<QUERIES>& p) const {
    const std::int64_t row = (p.slot * a.G + p.g) * a.T * a.D, end = p.own, first = first_key(a, p);
    for (std::int64_t c = first_chunk(a, p); c * chunk < end; c += a.splits) {
      const std::int64_t t = c * chunk + member;
      if (t < first || t >= end || column >= a.D) continue;
      prefetch_line(pointer<const void>(at(a.keys, row + t * a.D + column)));
      prefetch_line(pointer<const void>(at(a.values, row + t * a.D + column)));
    }
  }
  /// Attends to all positions of the split. rows.row_of(t): the row of k and v that has the key and value of position t; -1: the caches have them.
  template <class Rows> __device__ void attend(const cached_heads& a, const cached_place<QUERIES>& p, const Rows& rows) {
    const std::int64_t row = (p.slot * a.G + p.g) * a.T * a.D, end = p.own + 1, first = first_key(a, p);
#pragma unroll 1
    for (std::int64_t c = first_chunk(a, p); c * chunk < end; c += std::int64_t(ahead) * a.splits) {
      uint4 keys[ahead], values[ahead];
      bool seen[ahead];
#pragma unroll
      for (int i = 0; i < ahead; ++i) {
        const std::int64_t t = (c + std::int64_t(i) * a.splits) * chunk + member;
        seen[i] = t >= first && t < end;
        keys[i] = values[i] = make_uint4(0, 0, 0, 0);
        if (!seen[i] || column >= a.D) continue;
        std::uint64_t key = at(a.keys, row + t * a.D + column), value = at(a.values, row + t * a.D + column);
        if (const std::int64_t m = rows.row_of(t); m >= 0) {
          key = at(a.k, m * a.k_stride + std::int64_t(p.g) * a.D + column);
          value = at(a.v, m * a.v_stride + std::int64_t(p.g) * a.D + column);
        }
        keys[i] = *pointer<const uint4>(key);
        values[i] = *pointer<const uint4>(value);
      }
      float score[QUERIES][ahead];
#pragma unroll
      for (int i = 0; i < ahead; ++i) {
        float key[run];
        unpack<T>(keys[i], key);
#pragma unroll
        for (int r = 0; r < QUERIES; ++r) {
          float dot = 0.0f;
#pragma unroll
          for (int j = 0; j < run; ++j) dot = fmaf(q[r][j], key[j], dot);
#pragma unroll
          for (int apart = LANES / 2; apart > 0; apart /= 2) dot += __shfl_xor_sync(cached_lanes, dot, apart);
          score[r][i] = seen[i] ? a.scale * dot : -__uint_as_float(0x7f800000u);
        }
      }
#pragma unroll
      for (int r = 0; r < QUERIES; ++r) {
        float top = of[r].top;
#pragma unroll
        for (int i = 0; i < ahead; ++i) top = fmaxf(top, score[r][i]);
        const float base = cached_base(top), kept = exp2f(of[r].top - base);
        of[r].top = top;
        of[r].total *= kept;
#pragma unroll
        for (int j = 0; j < run; ++j) sum[r][j] *= kept;
#pragma unroll
        for (int i = 0; i < ahead; ++i) {
          score[r][i] = exp2f(score[r][i] - base);
          of[r].total += score[r][i];
        }
      }
#pragma unroll
      for (int i = 0; i < ahead; ++i) {
        float value[run];
        unpack<T>(values[i], value);
#pragma unroll
        for (int r = 0; r < QUERIES; ++r)
#pragma unroll
          for (int j = 0; j < run; ++j) sum[r][j] = fmaf(score[r][i], value[j], sum[r][j]);
      }
    }
  }
  /// Combines the groups of each warp, then the warps. All threads call it; the sums are valid behind a barrier.
  __device__ void combine(cached_sums<columns, QUERIES>& to) {
    __shared__ cached_sums<columns, QUERIES> of_warp[cached_warps];
#pragma unroll
    for (int r = 0; r < QUERIES; ++r) {
#pragma unroll
      for (int apart = LANES; apart < 32; apart *= 2) {
        const float other = __shfl_xor_sync(cached_lanes, of[r].top, apart), top = fmaxf(of[r].top, other), base = cached_base(top);
        const float mine = exp2f(of[r].top - base), theirs = exp2f(other - base);
        of[r].total = of[r].total * mine + __shfl_xor_sync(cached_lanes, of[r].total, apart) * theirs;
        of[r].top = top;
#pragma unroll
        for (int j = 0; j < run; ++j) sum[r][j] = sum[r][j] * mine + __shfl_xor_sync(cached_lanes, sum[r][j], apart) * theirs;
      }
      const int lane = int(threadIdx.x % 32), warp = int(threadIdx.x / 32);
      if (lane == 0) of_warp[warp].of[r] = of[r];
#pragma unroll
      for (int j = 0; j < run; ++j)
        if (lane < LANES) of_warp[warp].sum[r][column + j] = sum[r][j];
    }
    __syncthreads();
    for (int i = int(threadIdx.x); i < QUERIES * columns; i += cached_threads) {
      const int r = i / columns, c = i % columns;
      float total = 0.0f;
      const float top = cached_combined(
          cached_warps, [&](int w) { return of_warp[w].of[r]; }, [&](int w) { return of_warp[w].sum[r][c]; }, total, to.sum[r][c]);
      if (c == 0) to.of[r] = {top, total};
    }
  }
  /// The sums of `count` parts in their order; returns the maximum.
  template <class Top, class Sum>
  __device__ static float cached_combined(int count, const Top& of, const Sum& sum, float& total, float& result) {
    float top = of(0).top;
    for (int w = 1; w < count; ++w) top = fmaxf(top, of(w).top);
    const float base = cached_base(top);
    float all = 0.0f, weighted = 0.0f;
    for (int w = 0; w < count; ++w) {
      const cached_top part = of(w);
      const float scale = exp2f(part.top - base);
      all = fmaf(part.total, scale, all);
      weighted = fmaf(sum(w), scale, weighted);
    }
    total = all;
    result = weighted;
    return top;
  }
};

/// Writes the results of a block that has all positions.
template <int T, int COLUMNS, int QUERIES>
__device__ inline void store_results(const cached_heads& a, const cached_place<QUERIES>& p, const cached_sums<COLUMNS, QUERIES>& sums) {
  for (int i = int(threadIdx.x); i < QUERIES * COLUMNS; i += cached_threads) {
    const int r = i / COLUMNS, c = i % COLUMNS;
    if (c < a.D && p.has(a, r)) put<T>(a.y, p.result(a, r, c), sums.of[r].total == 0.0f ? 0.0f : sums.sum[r][c] / sums.of[r].total);
  }
}

}  // namespace isotope::cuda::gpu
