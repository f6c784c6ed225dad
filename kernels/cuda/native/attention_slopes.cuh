#pragma once
// What lies between the products of the gradient of attention on tensor cores: the weights P = exp(scale q k^T + mask - lse) and the
// derivatives dS = P (dy v^T - delta) of scores, element by element in registers, for 16 rows of a warp and N x 8 rows of the other side.
// Without the masks, which only tiles at the edges evaluate, an element takes one exp2 and three further operations.
#include "../attention/fragments.cuh"

namespace isotope::cuda::gpu {

template <int N> __device__ inline void clear(float (&x)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n) x[n][0] = x[n][1] = x[n][2] = x[n][3] = 0;
}
/// -lse in base-2 units; a query that sees no key has weights of 0.
__device__ inline float less_lse(float lse) { return lse == -INFINITY ? hidden_score : -lse * log2_e; }
/// The mask of a key in base-2 units.
__device__ inline float mask_of(const attention_arguments& a, int b, int t) {
  if (t >= a.T) return hidden_score;
  const float x = load(a.mask, b * a.mask_batch + t * a.mask_key, a.mask_type) * log2_e;
  return x < hidden_score ? hidden_score : x;
}
/// The sum of two products of bf16 elements.
__device__ inline float two_products(std::uint32_t x, std::uint32_t y) {
  return fmaf(__uint_as_float(x << 16), __uint_as_float(y << 16), __uint_as_float(x & 0xffff0000u) * __uint_as_float(y & 0xffff0000u));
}

/// The weights and derivatives of 16 queries of a warp.
template <bool DROPPED> struct query_slopes {
  const attention_arguments& a;
  const attention_dropout& dropout;
  int row0, lane;
  std::uint32_t first;     // the number of query row0 by which dropout draws
  float less[2], mean[2];  // -lse in base-2 units and delta of the lane's two rows

  /// Computes delta of the queries from row `row` of a head on, and writes it.
  __device__ query_slopes(const attention_arguments& arguments, const attention_dropout& drops, int b, int h, int row, int own_lane)
      : a(arguments), dropout(drops), row0(row), lane(own_lane), first(drawn_row(a, b, b * a.H + h) + std::uint32_t(row)) {
    const std::int64_t rows = (std::int64_t(b) * a.H + h) * a.S;
    const int own = row0 + lane / 2;  // two lanes for each row
    float sum = 0;
    if (own < a.S) {
      const bits16 *y = rows_of<const bits16>(a.y, b, h, a.D) + own * a.y.row,
                   *dy = rows_of<const bits16>(a.dy, b, h, a.D) + own * a.dy.row;
      for (int c = lane % 2 * 8; c < a.D; c += 16) {
        const uint4 x = *reinterpret_cast<const uint4*>(y + c), z = *reinterpret_cast<const uint4*>(dy + c);
        sum += (two_products(x.x, z.x) + two_products(x.y, z.y)) + (two_products(x.z, z.z) + two_products(x.w, z.w));
      }
    }
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    if (own < a.S && lane % 2 == 0) pointer<float>(a.delta)[rows + own] = sum;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int of = 8 * r + lane / 4;
      mean[r] = __shfl_sync(0xffffffffu, sum, 2 * of);
      less[r] = row0 + of < a.S ? less_lse(pointer<const float>(a.lse)[rows + row0 + of]) : hidden_score;
    }
  }
  /// p: q k^T, which is changed; ds: dy v^T, which becomes dS. bias: the masks of the keys from k0 on.
  template <int N> __device__ void apply(float (&p)[N][4], float (&ds)[N][4], const float* bias, int k0) const {
    const float two = a.scale * log2_e;
    std::uint32_t low = 0, high = 0;
    if constexpr (DROPPED) draw_by_query<N>(dropout, first, k0, lane, low, high);
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) p[n][e] = fmaf(p[n][e], two, less[e / 2]);
    if (a.masked) {
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) p[n][e] += bias[8 * n + 2 * (lane % 4) + e % 2];
    }
    if (k0 + 8 * N > end_key(a, row0) || k0 < first_key(a, row0 + 15)) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int row = row0 + 8 * r + lane / 4, column = k0 + 2 * (lane % 4);
        const int begin = first_key(a, row) - column, end = end_key(a, row) - column;
#pragma unroll
        for (int n = 0; n < N; ++n)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            if (8 * n + e >= end || 8 * n + e < begin) p[n][2 * r + e] = hidden_score;
      }
    }
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float slope = ds[n][e];
        if constexpr (DROPPED) slope = keeps(low, high, n, e) ? slope * a.factor : 0.0f;
        ds[n][e] = exp2_fast(p[n][e]) * (slope - mean[e / 2]);
      }
  }
};

/// The weights and derivatives of 16 keys of a warp.
template <bool DROPPED> struct key_slopes {
  const attention_arguments& a;
  const attention_dropout& dropout;
  int row0, lane;
  float bias[2] = {0, 0};  // the masks of the lane's two keys

  __device__ key_slopes(const attention_arguments& arguments, const attention_dropout& drops, int b, int row, int own_lane)
      : a(arguments), dropout(drops), row0(row), lane(own_lane) {
    if (!a.masked) return;
    bias[0] = mask_of(a, b, row0 + lane / 4);
    bias[1] = mask_of(a, b, row0 + lane / 4 + 8);
  }
  /// p: k q^T, which becomes P with dropout; ds: v dy^T, which becomes dS. less, mean: -lse in base-2 units and delta of the queries from
  /// q0 on. first: the number of query q0 by which dropout draws.
  template <int N>
  __device__ void apply(float (&p)[N][4], float (&ds)[N][4], const float* less, const float* mean, int q0, std::uint32_t first) const {
    const float two = a.scale * log2_e;
    std::uint32_t marks[4] = {0, 0, 0, 0};
    if constexpr (DROPPED) draw_by_key<N>(dropout, first, row0, lane, marks);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float2 own = *reinterpret_cast<const float2*>(less + 8 * n + 2 * (lane % 4));
#pragma unroll
      for (int e = 0; e < 4; ++e) p[n][e] = fmaf(p[n][e], two, e % 2 ? own.y : own.x);
    }
    if (a.masked) {
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) p[n][e] += bias[e / 2];
    }
    if (q0 < first_query(a, row0 + 15) || q0 + 8 * N > end_query(a, row0)) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int key = row0 + 8 * r + lane / 4, column = q0 + 2 * (lane % 4);
        const int begin = first_query(a, key) - column, end = end_query(a, key) - column;
#pragma unroll
        for (int n = 0; n < N; ++n)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            if (8 * n + e >= end || 8 * n + e < begin) p[n][2 * r + e] = hidden_score;
      }
    }
#pragma unroll
    for (int n = 0; n < N; ++n) {
      const float2 own = *reinterpret_cast<const float2*>(mean + 8 * n + 2 * (lane % 4));
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float weight = exp2_fast(p[n][e]);
        float slope = ds[n][e], share = weight;
        if constexpr (DROPPED) {
          const bool keep = (marks[e] >> (4 * n) & 1u) != 0;
          slope = keep ? slope * a.factor : 0.0f;
          share = keep ? weight * a.factor : 0.0f;
        }
        p[n][e] = share;
        ds[n][e] = weight * (slope - (e % 2 ? own.y : own.x));
      }
    }
  }
};

/// The tiles of queries that a block of keys walks: those of all heads that the keys serve, one after another.
struct query_walk {
  int head, q0, begin, end, step, all;

  __device__ query_walk(const attention_arguments& a, int g, int k0, int keys, int columns)
      : head(g * (a.H / a.G)), q0(first_query(a, k0) / columns * columns), begin(q0), end(end_query(a, k0 + keys - 1)), step(columns) {
    all = begin < end ? (end - begin + columns - 1) / columns * (a.H / a.G) : 0;
  }
  __device__ void next() {
    q0 += step;
    if (q0 < end) return;
    q0 = begin;
    ++head;
  }
};
/// -lse and delta of a query of a tile of COLUMNS, on their way to shared memory: thread t has query t.
template <int COLUMNS> struct query_statistics {
  float lse = -INFINITY, mean = 0;

  __device__ void fetch(const attention_arguments& a, int b, const query_walk& w) {
    const int row = w.q0 + int(threadIdx.x);
    if (int(threadIdx.x) >= COLUMNS) return;
    const std::int64_t i = (std::int64_t(b) * a.H + w.head) * a.S + row;
    lse = row < a.S ? pointer<const float>(a.lse)[i] : -INFINITY;
    mean = row < a.S ? pointer<const float>(a.delta)[i] : 0.0f;
  }
  __device__ void put(float* to) const {
    if (int(threadIdx.x) >= COLUMNS) return;
    to[threadIdx.x] = less_lse(lse);
    to[COLUMNS + threadIdx.x] = mean;
  }
};

}  // namespace isotope::cuda::gpu
