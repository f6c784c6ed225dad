#pragma once
// The tiles of attention on tensor cores. Rows of D bf16 elements are in shared memory with 16 bytes of padding, so that the eight rows
// that ldmatrix reads at a time are in different banks. A fragment of 16 rows is a left operand; the results of one product become the left
// operand of the next without leaving their registers.
#include "../device/access.cuh"
#include "../device/mma.cuh"
#include "operands.cuh"

namespace isotope::cuda::gpu {

using bits16 = std::uint16_t;

/// 2^x with a relative error of 2^-22; results below 2^-126 are 0.
__device__ inline float exp2_fast(float x) {
#if defined(ISOTOPE_EMULATED_DEVICE)
  return x < -126.0f ? 0.0f : exp2f(x);
#else
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
#endif
}
/// Rows of D elements in shared memory.
template <int D> struct row_tile {
  static constexpr int pitch = D + 8, vectors = D / 8;
  static constexpr int bytes(int rows) { return 2 * rows * pitch; }

  /// Starts the copy of `ROWS` rows from row `first` of a tensor on, by all threads of the block. Rows behind the last one and columns from
  /// `width` on are zeros.
  template <int ROWS, int THREADS>
  __device__ static void fetch(bits16* tile, const bits16* base, std::int64_t stride, int first, int rows, int width) {
#pragma unroll
    for (int i = 0; i < (ROWS * vectors + THREADS - 1) / THREADS; ++i) {
      const int n = int(threadIdx.x) + i * THREADS, r = n / vectors, c = n % vectors;
      if (ROWS * vectors % THREADS == 0 || n < ROWS * vectors) {
        const bool valid = first + r < rows && 8 * c < width;
        copy_async_16(tile + r * pitch + 8 * c, valid ? base + (first + r) * stride + 8 * c : base, valid);
      }
    }
  }
  /// The same with one address that runs down the rows, where threads are a multiple of a row's vectors. The gradient kernels use it; the
  /// forward kernels take 1.1 times as long with it.
  template <int ROWS, int THREADS>
  __device__ static void fetch_running(bits16* tile, const bits16* base, std::int64_t stride, int first, int rows, int width) {
    if constexpr (THREADS % vectors == 0 && ROWS % (THREADS / vectors) == 0) {
      constexpr int step = THREADS / vectors;
      const int r = int(threadIdx.x) / vectors, c = int(threadIdx.x) % vectors;
      const bits16* from = base + (first + r) * stride + 8 * c;
      bits16* to = tile + r * pitch + 8 * c;
#pragma unroll
      for (int i = 0; i < ROWS / step; ++i, from += step * stride) {
        const bool valid = first + r + i * step < rows && 8 * c < width;
        copy_async_16(to + i * step * pitch, valid ? from : base, valid);
      }
    } else {
      fetch<ROWS, THREADS>(tile, base, stride, first, rows, width);
    }
  }
  /// Stores a warp's `ROWS` rows of the tile as rows `first` on of a tensor, 16 bytes at a time.
  template <int ROWS>
  __device__ static void store(const bits16* tile, bits16* base, std::int64_t stride, int first, int rows, int width, int lane) {
    for (int n = lane; n < ROWS * vectors; n += 32) {
      const int r = n / vectors, c = n % vectors;
      if (first + r < rows && 8 * c < width)
        *reinterpret_cast<uint4*>(base + (first + r) * stride + 8 * c) = *reinterpret_cast<const uint4*>(tile + r * pitch + 8 * c);
    }
  }
  /// Where a lane reads: left operands and right operands whose inner axis runs down the tile; right operands whose inner axis runs along
  /// its rows.
  __device__ static int along(int lane) { return (lane & 15) * pitch + (lane >> 4) * 8; }
  __device__ static int across(int lane) { return ((lane >> 4) * 8 + (lane & 7)) * pitch + (lane >> 3 & 1) * 8; }
  /// Writes 16 rows of sums times the factors of a lane's two rows to the tile as bf16.
  __device__ static void put(bits16* tile, const float (&sums)[D / 8][4], float low, float high, int lane) {
    bits16* at = tile + (lane >> 2) * pitch + (lane & 3) * 2;
#pragma unroll
    for (int n = 0; n < D / 8; ++n) {
      *reinterpret_cast<std::uint32_t*>(at + 8 * n) = bf16_pair(sums[n][0] * low, sums[n][1] * low);
      *reinterpret_cast<std::uint32_t*>(at + 8 * n + 8 * pitch) = bf16_pair(sums[n][2] * high, sums[n][3] * high);
    }
  }
};

/// Columns 16 k to 16 k + 15 of N / 2 x 16 columns of results, as a left operand.
template <int N> __device__ inline void left_of(std::uint32_t (&a)[4], const float (&x)[N][4], int k) {
  a[0] = bf16_pair(x[2 * k][0], x[2 * k][1]);
  a[1] = bf16_pair(x[2 * k][2], x[2 * k][3]);
  a[2] = bf16_pair(x[2 * k + 1][0], x[2 * k + 1][1]);
  a[3] = bf16_pair(x[2 * k + 1][2], x[2 * k + 1][3]);
}
/// Adds the products of a left operand with two neighbouring right operands.
__device__ inline void add_products(float (&low)[4], float (&high)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[4]) {
  const std::uint32_t b0[2] = {b[0], b[1]}, b1[2] = {b[2], b[3]};
  mma_16x8x16_bf16(low, a, b0);
  mma_16x8x16_bf16(high, a, b1);
}

/// The marks of N x 8 keys from key k0 on for the 16 queries from row `row` on: bit 4 n + i of `low`, `high`: the lane's row keeps key 4 (2
/// n + (lane / 2) % 2) + i. Each lane draws for one of its two rows and gets the other row from its neighbour.
template <int N>
__device__ inline void draw_by_query(const attention_dropout& d, std::uint32_t row, int k0, int lane, std::uint32_t& low,
                                     std::uint32_t& high) {
  static_assert(N <= 8);
  const std::uint32_t own_row = row + std::uint32_t(lane >> 2) + (lane & 1 ? 8u : 0u);
  std::uint32_t own = 0;
#pragma unroll
  for (int n = 0; n < N; ++n) own |= d.kept(own_row, std::uint32_t(k0 / 4 + 2 * n + (lane >> 1 & 1))) << (4 * n);
  const std::uint32_t other = __shfl_xor_sync(0xffffffffu, own, 1);
  const int shift = (lane & 1) * 2;
  low = (lane & 1 ? other : own) >> shift;
  high = (lane & 1 ? own : other) >> shift;
}
/// Whether element e of tile n of a lane is kept, with the marks of its two rows.
__device__ inline bool keeps(std::uint32_t low, std::uint32_t high, int n, int e) {
  return ((e < 2 ? low : high) >> (4 * n + (e & 1)) & 1u) != 0;
}

/// The same with keys as rows: marks of 16 keys from key k0 on for the N x 8 queries from row `row` on. Bit 4 n of marks[e]: element e of
/// tile n is kept. Each lane draws four keys of one query and gets three such groups from others.
template <int N>
__device__ inline void draw_by_key(const attention_dropout& d, std::uint32_t row, int k0, int lane, std::uint32_t (&marks)[4]) {
  static_assert(N <= 8);
  const int g = lane >> 2, i = g & 3;
  const std::uint32_t query = row + std::uint32_t((lane & 3) * 2 + (i & 1)), group = std::uint32_t(k0 / 4 + (g >> 2) + (i >> 1) * 2);
  std::uint32_t own = 0;
#pragma unroll
  for (int n = 0; n < N; ++n) own |= d.kept(query + 8u * unsigned(n), group) << (4 * n);
#pragma unroll
  for (int e = 0; e < 4; ++e) marks[e] = __shfl_sync(0xffffffffu, own, (lane & 0x13) | e << 2) >> i;
}

}  // namespace isotope::cuda::gpu
