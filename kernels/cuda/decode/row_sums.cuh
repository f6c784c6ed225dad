#pragma once
// The residual rows of a half: blocks of a cluster add up the parts that the launch before has written, an eighth of the columns each, and pass the sums to each
// other. Then every warp has what it multiplies: normalised rows, rounded to bf16, as the first operand of mma.sync. A thread reads chunks of eight elements of rows and
// of weights and passes them on as they are, as in matmul_rows_mma.cu.
#include "decode/halves.h"
#include "device/cluster.cuh"
#include "device/early.cuh"
#include "device/mma.cuh"
#include "rows/teams.cuh"
#include "rows/vectors.cuh"

namespace isotope::cuda::gpu {

/// Rows in shared memory and what normalises them. `arrived`: the barrier of the rows.
template <int C, int Rows> struct decode_row_memory {
  float x[Rows][C];
  uint4 weight[C / 8], bias[C / 8];
  float2 moments[Rows];  // mean, 1 / standard deviation
  std::uint64_t arrived;
};

/// Element `column` of the row of a table that ids[row] names; NaN if there is none.
template <int C> __device__ inline float of_table(std::uint64_t table, std::uint64_t ids, std::int32_t count, int row, int column) {
  const std::int32_t id = pointer<const std::int32_t>(ids)[row];
  return id >= 0 && id < count ? bf16_value(pointer<const std::uint16_t>(table)[std::int64_t(id) * C + column])
                               : __uint_as_float(0x7fffffffu);
}
/// Element (row, column) of the residual, and the next Wide - 1 ones: the parts in their order.
template <int C, int Wide> __device__ inline void sum_of_parts(const decode_rows& a, int row, int column, float (&sum)[Wide]) {
  const std::int64_t at = std::int64_t(row) * C + column;
  if (a.from == 0) {
#pragma unroll
    for (int i = 0; i < Wide; ++i)
      sum[i] = a.x != 0 ? bf16_value(pointer<const std::uint16_t>(a.x)[at + i])
                        : rounded(of_table<C>(a.words, a.word_ids, a.word_count, row, column + i) +
                                      of_table<C>(a.places, a.place_ids, a.place_count, row, column + i),
                                  bf16);
    return;
  }
  const float* from = pointer<const float>(a.from) + at;
  const std::int64_t part = std::int64_t(a.N) * C;
  float v[decode_most_parts][Wide];
#pragma unroll
  for (int p = 0; p < decode_most_parts; ++p) {
    if (p >= a.parts) continue;
    if constexpr (Wide == 2) {
      const float2 two = __ldcg(reinterpret_cast<const float2*>(from + p * part));
      v[p][0] = two.x, v[p][1] = two.y;
    } else {
      v[p][0] = __ldcg(from + p * part);
    }
  }
#pragma unroll
  for (int i = 0; i < Wide; ++i) sum[i] = v[0][i];
#pragma unroll
  for (int p = 1; p < decode_most_parts; ++p)
#pragma unroll
    for (int i = 0; i < Wide; ++i)
      if (p < a.parts) sum[i] += v[p][i];
}

/// Reads the weights of the normalisation, which depend on no launch.
template <int C, int Rows> __device__ inline void load_norm(const decode_rows& a, decode_row_memory<C, Rows>& s) {
  for (int i = int(threadIdx.x); i < C / 8; i += int(blockDim.x)) {
    copy_async_16(&s.weight[i], pointer<const uint4>(a.norm_weight) + i);
    copy_async_16(&s.bias[i], pointer<const uint4>(a.norm_bias) + i);
  }
}
/// Mean and 1 / standard deviation of a row, by a warp. Sums are of differences to the first element, so that a large mean costs no digits.
template <int C> __device__ inline float2 moments_of(const float (&x)[C], float epsilon) {
  const int lane = int(threadIdx.x) % 32;
  const float shift = x[0];
  float sum[2] = {}, square[2] = {};
#pragma unroll
  for (int i = 0; i < C / 128; ++i) {
    const float4 v = reinterpret_cast<const float4*>(x)[lane + 32 * i];
    const float d[4] = {v.x - shift, v.y - shift, v.z - shift, v.w - shift};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      sum[k % 2] += d[k];
      square[k % 2] = fmaf(d[k], d[k], square[k % 2]);
    }
  }
  float all[2] = {sum[0] + sum[1], square[0] + square[1]};
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2)
#pragma unroll
    for (int k = 0; k < 2; ++k) all[k] += __shfl_xor_sync(all_lanes, all[k], apart);
  const float mean = all[0] * (1.0f / C), variance = fmaxf(all[1] * (1.0f / C) - mean * mean, 0.0f);
  return {mean + shift, rsqrtf(variance + epsilon)};
}
/// Mean of a block's columns of a row, and the sum of squared differences from it, by a warp, or by each half of a warp for a row of its own.
template <int Threads = 32, int Own> __device__ inline float2 moments_of_columns(const float (&x)[Own]) {
  static_assert((Threads == 32 || Threads == 16) && Own % Threads == 0);
  const int thread = int(threadIdx.x) % Threads;
  const float pivot = x[0];
  float sum[2] = {};
#pragma unroll
  for (int i = 0; i < Own / Threads; ++i) {
    const float d = x[thread + Threads * i] - pivot;
    sum[0] += d;
    sum[1] = fmaf(d, d, sum[1]);
  }
#pragma unroll
  for (int apart = Threads / 2; apart > 0; apart /= 2)
#pragma unroll
    for (int k = 0; k < 2; ++k) sum[k] += __shfl_xor_sync(all_lanes, sum[k], apart);
  const float mean = sum[0] * (1.0f / Own);
  return {pivot + mean, fmaxf(sum[1] - sum[0] * mean, 0.0f)};
}
/// The moments of all rows, in shared memory behind a barrier; of a single row, every warp computes them.
template <int C, int Rows> __device__ inline float2 moments_of_rows(const decode_rows& a, decode_row_memory<C, Rows>& s) {
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, row = lane / 4;
  if constexpr (Rows == 1) {
    return moments_of<C>(s.x[0], a.epsilon);
  } else {
    for (int r = warp; r < a.N; r += int(blockDim.x) / 32) {
      const float2 m = moments_of<C>(s.x[r], a.epsilon);
      if (lane == 0) s.moments[r] = m;
    }
    __syncthreads();
    return row < a.N ? s.moments[row] : float2{0.0f, 0.0f};
  }
}
/// Eight normalised elements of a row from `column` on; zeros if there is no such row.
template <int C, int Rows>
__device__ inline uint4 normalised(const decode_rows& a, const decode_row_memory<C, Rows>& s, int row, const float2& moments, int column) {
  if (row >= a.N || row >= Rows) return {0, 0, 0, 0};
  float g[8], b[8], y[8];
  unpack<bf16>(s.weight[column / 8], g);
  unpack<bf16>(s.bias[column / 8], b);
#pragma unroll
  for (int i = 0; i < 8; ++i) y[i] = fmaf((s.x[row][column + i] - moments.x) * moments.y, g[i], b[i]);
  return packed<bf16>(y);
}
/// Eight numbers of shared memory, rounded to bf16.
__device__ inline uint4 packed_eight(const float* x) {
  const float4 u = reinterpret_cast<const float4*>(x)[0], v = reinterpret_cast<const float4*>(x)[1];
  const float y[8] = {u.x, u.y, u.z, u.w, v.x, v.y, v.z, v.w};
  return packed<bf16>(y);
}

/// sums[t] += the products of the rows with rows 8 t and on of weights, over Steps times 32 elements. `w`: the first of them in shared memory, for this thread:
/// see decode_chunk.
template <int Tiles, int Steps, int Pitch>
__device__ inline void multiply_rows(const unsigned char* w, const uint4 (&x)[Steps], float (&sums)[Tiles][4]) {
#pragma unroll
  for (int i = 0; i < Steps; ++i) {
    const std::uint32_t first[4] = {x[i].x, 0, x[i].y, 0}, second[4] = {x[i].z, 0, x[i].w, 0};
#pragma unroll
    for (int t = 0; t < Tiles; ++t) {
      const uint4 y = *reinterpret_cast<const uint4*>(w + 8 * t * Pitch + 64 * i);
      const std::uint32_t a[2] = {y.x, y.y}, b[2] = {y.z, y.w};
      mma_16x8x16_bf16(sums[t], first, a);
      mma_16x8x16_bf16(sums[t], second, b);
    }
  }
}
/// Where the thread's chunks of a step begin: row lane / 4, elements 8 (lane % 4) and on.
template <int Pitch> __device__ inline const unsigned char* decode_chunk(const unsigned char* w) {
  const int lane = int(threadIdx.x) % 32;
  return w + lane / 4 * Pitch + 16 * (lane % 4);
}
/// Starts copying Count rows of Chunks times 16 bytes to shared memory; row i begins at from(i).
template <int Count, int Chunks, int Pitch, class From> __device__ inline void load_weights(unsigned char* to, const From& from) {
  for (int i = int(threadIdx.x); i < Count * Chunks; i += int(blockDim.x)) {
    const int row = i / Chunks, chunk = i % Chunks;
    copy_async_16(to + row * Pitch + 16 * chunk, reinterpret_cast<const uint4*>(from(row)) + chunk);
  }
}
/// Two elements of the bias of the projection, which part 0 adds to columns 8 warp + 2 (lane % 4) and on of this block's.
template <int C> __device__ inline float2 load_projection_bias(std::uint64_t bias, int part, int rank) {
  const int column = rank * (C / decode_ranks) + int(threadIdx.x) / 32 * 8 + 2 * (int(threadIdx.x) % 4);
  if (part != 0) return {0.0f, 0.0f};
  const std::uint32_t b = pointer<const std::uint32_t>(bias)[column / 2];
  return {low_value<bf16>(b), high_value<bf16>(b)};
}
/// 0.5 x (1 + tanh(u)) = x / (1 + exp(-2 u)), u = sqrt(2 / pi) (x + 0.044715 x^3)
__device__ inline float decode_gelu(float x) {
  constexpr float root = 0.7978845608f, twice = 2.885390082f;  // sqrt(2 / pi), 2 log2(e)
  return x / (1.0f + exp2f(-twice * root * (x + 0.044715f * x * x * x)));
}
/// Waits for the copies of all threads of the block to shared memory.
__device__ inline void wait_for_copies() {
  copy_async_wait_all();
  __syncthreads();
}
/// Arguments that are needed behind the wait come to the multiprocessor before it.
__device__ inline void prefetch_arguments(const decode_rows& a, std::uint64_t to) {
#if !defined(ISOTOPE_EMULATED_DEVICE)
  asm volatile("" ::"l"(to), "l"(a.from), "l"(a.x), "f"(a.epsilon), "r"(a.parts));
#endif
}

}  // namespace isotope::cuda::gpu
