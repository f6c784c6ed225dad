#pragma once
// The two products of attention in f32, between rows in shared memory. 16 x 16 threads: thread (across, down) owns the rows down * OWN / 16
// and following, the rows across + 16 j of the other side, and the columns 4 (across + 16 j) of results. The weights between the products
// pass through shared memory, but only within half a warp. One vector of padding lets eight adjacent rows start in different banks.
#include "../attention/operands.cuh"
#include "attention_rows.h"

namespace isotope::cuda::gpu {

/// Four elements of a row from `column` on, 0 outside the tensor.
__device__ inline float4 piece(const attention_arguments& a, const head_rows& r, std::int64_t base, int row, int rows, int column) {
  if (row >= rows || column >= a.D) return {0, 0, 0, 0};
  const std::int64_t i = base + row * r.row + column;
  if (a.wide && r.type == f32) return *reinterpret_cast<const float4*>(pointer<const float>(r.at) + i);
  if (a.wide && r.type == bf16) {
    const uint2 x = *reinterpret_cast<const uint2*>(pointer<const std::uint16_t>(r.at) + i);
    return {__uint_as_float(x.x << 16), __uint_as_float(x.x & 0xffff0000u), __uint_as_float(x.y << 16), __uint_as_float(x.y & 0xffff0000u)};
  }
  float4 x{load(r.at, i, r.type), 0, 0, 0};
  if (column + 1 < a.D) x.y = load(r.at, i + 1, r.type);
  if (column + 2 < a.D) x.z = load(r.at, i + 2, r.type);
  if (column + 3 < a.D) x.w = load(r.at, i + 3, r.type);
  return x;
}
__device__ inline void store_piece(const attention_arguments& a, const head_rows& r, std::int64_t base, int row, int rows, int column,
                                   float4 x) {
  if (row >= rows || column >= a.D) return;
  const std::int64_t i = base + row * r.row + column;
  if (a.wide && r.type == f32) {
    *reinterpret_cast<float4*>(pointer<float>(r.at) + i) = x;
    return;
  }
  if (a.wide && r.type == bf16) {
    *reinterpret_cast<uint2*>(pointer<std::uint16_t>(r.at) + i) = {std::uint32_t(bf16_bits(x.x)) | std::uint32_t(bf16_bits(x.y)) << 16,
                                                                   std::uint32_t(bf16_bits(x.z)) | std::uint32_t(bf16_bits(x.w)) << 16};
    return;
  }
  store(r.at, i, r.type, x.x);
  if (column + 1 < a.D) store(r.at, i + 1, r.type, x.y);
  if (column + 2 < a.D) store(r.at, i + 2, r.type, x.z);
  if (column + 3 < a.D) store(r.at, i + 3, r.type, x.w);
}
/// The first element of row 0 of a head.
__device__ inline std::int64_t head_of(const attention_arguments& a, const head_rows& r, int b, int head) {
  return b * r.batch + std::int64_t(head) * a.D;
}
__device__ inline bool hides(const attention_arguments& a, int s, int t) { return t >= end_key(a, s) || t < first_key(a, s); }
/// The sum of x over the 16 threads of half a warp, or their largest.
__device__ inline float half_warp_sum(float x) {
#pragma unroll
  for (int i = 1; i < 16; i *= 2) x += __shfl_xor_sync(0xffffffffu, x, i);
  return x;
}
__device__ inline float half_warp_largest(float x) {
#pragma unroll
  for (int i = 1; i < 16; i *= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, i));
  return x;
}

template <int D, int OWN, int OTHER> struct row_products {
  static constexpr int vectors = D / 4, pitch = vectors + 1;                   // of a row, in units of four floats
  static constexpr int R = OWN / 16, X = OTHER / 16, C = (vectors + 15) / 16;  // rows of both sides and vectors of columns of a thread
  static constexpr int weight_pitch = OTHER + 4;
  static_assert(R <= 4 && X <= 4);

  const int across = int(threadIdx.x) % 16, down = int(threadIdx.x) / 16;
  __device__ int own(int i) const { return down * R + i; }
  __device__ int other(int j) const { return across + 16 * j; }

  /// Copies rows `first` on of a head to shared memory.
  template <int ROWS>
  __device__ static void fetch(float4* tile, const attention_arguments& a, const head_rows& r, std::int64_t base, int first, int rows) {
    for (int n = int(threadIdx.x); n < ROWS * vectors; n += attention_rows_tile::threads)
      tile[n / vectors * pitch + n % vectors] = piece(a, r, base, first + n / vectors, rows, 4 * (n % vectors));
  }
  /// x[i][j] = own row i times row j of the other side.
  __device__ void multiply(float (&x)[R][X], const float4* left, const float4* right) const {
#pragma unroll
    for (int i = 0; i < R; ++i)
#pragma unroll
      for (int j = 0; j < X; ++j) x[i][j] = 0;
#pragma unroll 4
    for (int c = 0; c < vectors; ++c) {
      float4 l[R];
#pragma unroll
      for (int i = 0; i < R; ++i) l[i] = left[own(i) * pitch + c];
#pragma unroll
      for (int j = 0; j < X; ++j) {
        const float4 r = right[other(j) * pitch + c];
#pragma unroll
        for (int i = 0; i < R; ++i) x[i][j] = fmaf(l[i].w, r.w, fmaf(l[i].z, r.z, fmaf(l[i].y, r.y, fmaf(l[i].x, r.x, x[i][j]))));
      }
    }
  }
  /// Puts weights where the other threads of the half warp read them.
  __device__ void put(float* weights, const float (&x)[R][X]) const {
#pragma unroll
    for (int i = 0; i < R; ++i)
#pragma unroll
      for (int j = 0; j < X; ++j) weights[own(i) * weight_pitch + other(j)] = x[i][j];
  }
  /// sums[i] += weights of own row i times the rows of the other side.
  __device__ void add_rows(float4 (&sums)[R][C], const float* weights, const float4* rows) const {
#pragma unroll 2
    for (int r = 0; r < OTHER; r += 4) {
      float4 w[R];
#pragma unroll
      for (int i = 0; i < R; ++i) w[i] = *reinterpret_cast<const float4*>(weights + own(i) * weight_pitch + r);
#pragma unroll
      for (int j = 0; j < C; ++j) {
        const int column = across + 16 * j;
        if (vectors % 16 != 0 && column >= vectors) continue;
        const float4* at = rows + r * pitch + column;
        const float4 v0 = at[0], v1 = at[pitch], v2 = at[2 * pitch], v3 = at[3 * pitch];
#pragma unroll
        for (int i = 0; i < R; ++i) {
          float4& s = sums[i][j];
          s.x = fmaf(w[i].w, v3.x, fmaf(w[i].z, v2.x, fmaf(w[i].y, v1.x, fmaf(w[i].x, v0.x, s.x))));
          s.y = fmaf(w[i].w, v3.y, fmaf(w[i].z, v2.y, fmaf(w[i].y, v1.y, fmaf(w[i].x, v0.y, s.y))));
          s.z = fmaf(w[i].w, v3.z, fmaf(w[i].z, v2.z, fmaf(w[i].y, v1.z, fmaf(w[i].x, v0.z, s.z))));
          s.w = fmaf(w[i].w, v3.w, fmaf(w[i].z, v2.w, fmaf(w[i].y, v1.w, fmaf(w[i].x, v0.w, s.w))));
        }
      }
    }
  }
  /// Stores own row i times factor.
  __device__ void store_rows(const attention_arguments& a, const head_rows& r, std::int64_t base, int first, int rows, int i,
                             const float4 (&sums)[C], float factor) const {
#pragma unroll
    for (int j = 0; j < C; ++j) {
      const int column = across + 16 * j;
      if (column >= vectors) continue;
      const float4 x = sums[j];
      store_piece(a, r, base, first + own(i), rows, 4 * column, {x.x * factor, x.y * factor, x.z * factor, x.w * factor});
    }
  }
  __device__ static void clear(float4 (&sums)[R][C]) {
#pragma unroll
    for (int i = 0; i < R; ++i)
#pragma unroll
      for (int j = 0; j < C; ++j) sums[i][j] = {0, 0, 0, 0};
  }

  /// Which probabilities of own queries are kept. Four neighbouring keys share random words and belong to four threads: each draws a
  /// quarter of the words.
  struct marks {
    std::uint32_t words[4];
    int lane;
    __device__ bool keeps(int i, int j) const {
      const int n = i * X + j;
      return (words[n % 4] >> (n / 4 * 4 + lane) & 1u) != 0;
    }
  };
  /// row: the number of own row 0 by which dropout draws; k0: the first key of the tile.
  __device__ marks draw(const attention_dropout& d, std::uint32_t row, int k0) const {
    std::uint32_t drawn = 0;
    const int lane = across % 4;
    for (int m = 0; m < (R * X + 3) / 4; ++m) {
      const int n = 4 * m + lane;
      if (n < R * X) drawn |= d.kept(row + std::uint32_t(own(n / X)), std::uint32_t((k0 + other(n % X)) / 4)) << (4 * m);
    }
    marks x;
    x.lane = lane;
#pragma unroll
    for (int i = 0; i < 4; ++i) x.words[i] = __shfl_sync(0xffffffffu, drawn, (int(threadIdx.x) & 28) | i);
    return x;
  }
};

}  // namespace isotope::cuda::gpu
