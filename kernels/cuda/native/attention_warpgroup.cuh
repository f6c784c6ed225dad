#pragma once
// Products of a warpgroup, for sm_90a alone: 64 rows by 64 columns by 16. Operands in shared memory are rows of 128 bytes, of which eight
// make an atom of 1,024 bytes; in row r, vector c of 16 bytes is at place c ^ (r % 8). The asynchronous proxy reads them: what threads
// wrote there needs publish() and a barrier first.
#include "../attention/fragments.cuh"
#include "../device/hopper.cuh"
#include "../device/wgmma.cuh"

namespace isotope::cuda::gpu {

/// A number that is known when code is compiled, as an argument.
template <int N> struct number {
  static constexpr int value = N;
};
/// The byte offset of vector c in row r.
__device__ inline int swizzled(int r, int c) { return r * 128 + ((c ^ (r & 7)) << 4); }
/// The descriptor of 64 rows at an address.
__device__ inline std::uint64_t swizzled_rows(const void* at) { return matrix_descriptor<false>(shared_address(at), 0); }

/// Rows of 64 elements in shared memory, as the descriptors above take them.
struct swizzled_tile {
  static constexpr int row_bytes = 128;

  /// Starts the copy of ROWS rows from row `first` of a tensor on, by all threads of the block. Rows behind the last one are zeros.
  template <int ROWS, int THREADS>
  __device__ static void fetch(unsigned char* tile, const bits16* base, std::int64_t stride, int first, int rows) {
    constexpr int step = THREADS / 8;
    static_assert(step % 8 == 0);
    const int r = int(threadIdx.x) / 8, c = int(threadIdx.x) % 8;
    const bits16* from = base + (first + r) * stride + 8 * c;
    unsigned char* to = tile + swizzled(r, c);
    if (ROWS % step == 0 && first + ROWS <= rows) {
#pragma unroll
      for (int i = 0; i < ROWS / step; ++i, from += step * stride) copy_async_16(to + i * step * row_bytes, from);
      return;
    }
#pragma unroll
    for (int i = 0; i < (ROWS + step - 1) / step; ++i, from += step * stride) {
      if (ROWS % step != 0 && r + i * step >= ROWS) break;
      const bool valid = first + r + i * step < rows;
      copy_async_16(to + i * step * row_bytes, valid ? from : base, valid);
    }
  }
  /// Writes 16 rows of sums times the factors of a lane's two rows to a warp's place, then stores them as rows `first` on of a tensor, 16
  /// bytes at a time.
  __device__ static void store(unsigned char* strip, const float (&sums)[8][4], float low, float high, bits16* base, std::int64_t stride,
                               int first, int rows, int lane) {
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const int place = swizzled(lane / 4, n) + lane % 4 * 4;
      *reinterpret_cast<std::uint32_t*>(strip + place) = bf16_pair(sums[n][0] * low, sums[n][1] * low);
      *reinterpret_cast<std::uint32_t*>(strip + 8 * row_bytes + place) = bf16_pair(sums[n][2] * high, sums[n][3] * high);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = lane / 8 + 4 * i, c = lane % 8;
      if (first + r < rows)
        *reinterpret_cast<uint4*>(base + (first + r) * stride + 8 * c) = *reinterpret_cast<const uint4*>(strip + swizzled(r, c));
    }
  }
};
/// d = 64 rows of 64 elements at `a` times 64 or 128 rows at `b`, in a group that this call does not end.
template <int N> __device__ inline void multiply_tiles(float (&d)[N][4], std::uint64_t a, std::uint64_t b) {
#pragma unroll
  for (int k = 0; k < 4; ++k) wgmma_bf16<false, false>(reinterpret_cast<float(&)[4 * N]>(d), a + 2 * k, b + 2 * k, k > 0);
}
/// d += weights, 64 rows by 16 K, times 16 K rows of 64 elements at `b`.
template <int K> __device__ inline void multiply_weights(float (&d)[8][4], const std::uint32_t (&weights)[K][4], std::uint64_t b) {
#pragma unroll
  for (int k = 0; k < K; ++k) multiply_columns(d, weights[k], b + 128 * k);
}
/// The weights of 8 N columns as left operands.
template <int N> __device__ inline void weights_of(std::uint32_t (&weights)[N / 2][4], const float (&x)[N][4]) {
#pragma unroll
  for (int k = 0; k < N / 2; ++k) left_of(weights[k], x, k);
}

}  // namespace isotope::cuda::gpu
