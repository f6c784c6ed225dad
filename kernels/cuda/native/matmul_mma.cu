// flags: -fmad=false
//
// A matmul of bf16 operands with f32 sums on tensor cores, for every device from sm_80 on. Bound by the rate of mma.sync. A block computes
// a tile of y; each warp has 64 x 64 sums (32 x 32 in the small tile) in registers. Slabs of 64 along K arrive by asynchronous copies in
// three or four stages of shared memory, in the memory order of the operands. Sums pass through shared memory to be finished eight columns at
// a time.
#include "native/matmul_mma.cuh"

namespace isotope::cuda::gpu {

template <bool ACross, bool BCross, class S> __device__ inline void mma(const gemm& g) {
  uint4* memory = reinterpret_cast<uint4*>(dynamic_shared());  // (stages, A then B), then the sums
  const int down = (g.rows + S::m - 1) / S::m, across = (g.columns + S::n - 1) / S::n;
  int tile_row, tile_column;
  tile_at(int(blockIdx.x), down, across, tile_row, tile_column);
  const int m0 = tile_row * S::m, n0 = tile_column * S::n;
  const int batch = g.first + int(blockIdx.z) / g.parts, part = int(blockIdx.z) % g.parts;
  const std::int64_t begin64 = std::int64_t(part) * g.part_depth;
  const int begin = int(begin64 < g.depth ? begin64 : g.depth),
            end = int(begin64 + g.part_depth < g.depth ? begin64 + g.part_depth : g.depth);
  const int warp = int(threadIdx.x) / 32, m = warp / S::warps_n * S::warp_m, n = warp % S::warps_n * S::warp_n;

  mma_mover<ACross, S::m, S> a(g.a, batch_offset(batch, g.inner, g.a.outer, g.a.inner), m0, g.rows, begin);
  mma_mover<BCross, S::n, S> b(g.b, batch_offset(batch, g.inner, g.b.outer, g.b.inner), n0, g.columns, begin);
  mma_sums<ACross, BCross, S> sums;
  sums.clear();

  const int slabs = (end - begin + S::slab - 1) / S::slab;
#pragma unroll
  for (int i = 0; i < S::stages - 1; ++i) {
    if (i < slabs) {
      a.take(memory + i * S::stage, begin + i * S::slab, end);
      b.take(memory + i * S::stage + S::chunks_a, begin + i * S::slab, end);
    }
    copy_async_commit();
  }
  int read = 0, write = S::stages - 1;
#pragma unroll 1
  for (int i = 0; i < slabs; ++i) {
    copy_async_wait<S::stages - 2>();
    __syncthreads();  // the slab is there for all threads, and all have read the stage that is written next
    const uint4 *from_a = memory + read * S::stage, *from_b = from_a + S::chunks_a;
    std::uint32_t left[2][S::units_m][4], right[2][S::units_n][4];
    sums.load_fragments(from_a, from_b, 0, m, n, left[0], right[0]);
    if (i + S::stages - 1 < slabs) {
      const int k = begin + (i + S::stages - 1) * S::slab;
      a.take(memory + write * S::stage, k, end);
      b.take(memory + write * S::stage + S::chunks_a, k, end);
    }
    copy_async_commit();
#pragma unroll
    for (int k = 0; k < S::slab / 16; ++k) {
      if (k + 1 < S::slab / 16) sums.load_fragments(from_a, from_b, k + 1, m, n, left[(k + 1) % 2], right[(k + 1) % 2]);
      sums.multiply(left[k % 2], right[k % 2]);
    }
    read = read + 1 == S::stages ? 0 : read + 1;
    write = write + 1 == S::stages ? 0 : write + 1;
  }

  copy_async_wait<0>();
  __syncthreads();
  float* finished = reinterpret_cast<float*>(memory);
  sums.store(finished, m, n);
  __syncthreads();
  finish_tile<S::threads, S::m, S::n, S::sums_line>(g, batch, part, m0, n0, finished);
}

// The host's list of tiles is in gemm/tile.hpp.
using large_tile = mma_tile<128, 128, 64, 2, 2, 3>;
using small_tile = mma_tile<64, 64, 64, 2, 2, 4>;

extern "C" __global__ void __launch_bounds__(128, 2) matmul_mma_large_nn(const __grid_constant__ gemm g) {
  mma<false, true, large_tile>(g);
}
extern "C" __global__ void __launch_bounds__(128, 2) matmul_mma_large_nt(const __grid_constant__ gemm g) {
  mma<false, false, large_tile>(g);
}
extern "C" __global__ void __launch_bounds__(128, 2) matmul_mma_large_tn(const __grid_constant__ gemm g) { mma<true, true, large_tile>(g); }
extern "C" __global__ void __launch_bounds__(128, 2) matmul_mma_large_tt(const __grid_constant__ gemm g) {
  mma<true, false, large_tile>(g);
}
extern "C" __global__ void __launch_bounds__(128, 3) matmul_mma_small_nn(const __grid_constant__ gemm g) {
  mma<false, true, small_tile>(g);
}
extern "C" __global__ void __launch_bounds__(128, 3) matmul_mma_small_nt(const __grid_constant__ gemm g) {
  mma<false, false, small_tile>(g);
}
extern "C" __global__ void __launch_bounds__(128, 3) matmul_mma_small_tn(const __grid_constant__ gemm g) { mma<true, true, small_tile>(g); }
extern "C" __global__ void __launch_bounds__(128, 3) matmul_mma_small_tt(const __grid_constant__ gemm g) {
  mma<true, false, small_tile>(g);
}

}  // namespace isotope::cuda::gpu
