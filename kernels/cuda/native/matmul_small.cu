// flags: -fmad=false
//
// A matmul of bf16 operands for products that a device finishes in a few microseconds, for every device from sm_80 on. Bound by latency: the
// start of a block, one trip to memory, the end. So tiles are small, to occupy all multiprocessors; slabs of K are requested at once as far as
// shared memory goes; and the warps of a block share the steps of a slab, so that little is left to do when the last slab arrives. The
// shares are added in a fixed order while sums are finished. Only the cases of finish_tile.cuh that have code of their own are here.
#include "native/matmul_mma.cuh"

namespace isotope::cuda::gpu {

template <bool ACross, bool BCross, class S> __device__ inline void small(const gemm& g) {
  uint4* memory = reinterpret_cast<uint4*>(dynamic_shared());  // (stages, A then B), then the shares of the sums
  const int down = (g.rows + S::m - 1) / S::m;
  const int m0 = int(blockIdx.x) % down * S::m, n0 = int(blockIdx.x) / down * S::n;
  const int batch = g.first + int(blockIdx.z);
  constexpr int steps = S::slab / 16 / S::warps_k;  // of a warp in a slab
  const int warp = int(threadIdx.x) / 32, share = warp % S::warps_k, m = warp / S::warps_k / S::warps_n * S::warp_m,
            n = warp / S::warps_k % S::warps_n * S::warp_n;

  mma_mover<ACross, S::m, S> a(g.a, batch_offset(batch, g.inner, g.a.outer, g.a.inner), m0, g.rows, 0);
  mma_mover<BCross, S::n, S> b(g.b, batch_offset(batch, g.inner, g.b.outer, g.b.inner), n0, g.columns, 0);
  mma_sums<ACross, BCross, S> sums;
  sums.clear();

  const int slabs = (g.depth + S::slab - 1) / S::slab;
#pragma unroll
  for (int i = 0; i < S::stages; ++i) {
    if (i < slabs) {
      a.take(memory + i * S::stage, i * S::slab, g.depth);
      b.take(memory + i * S::stage + S::chunks_a, i * S::slab, g.depth);
    }
    copy_async_commit();
  }
  int stage = 0;
#pragma unroll 1
  for (int i = 0; i < slabs; ++i) {
    copy_async_wait<S::stages - 1>();
    __syncthreads();  // the slab is there for all threads
    const uint4 *from_a = memory + stage * S::stage, *from_b = from_a + S::chunks_a;
    std::uint32_t left[steps][S::units_m][4], right[steps][S::units_n][4];
#pragma unroll
    for (int k = 0; k < steps; ++k) sums.load_fragments(from_a, from_b, share * steps + k, m, n, left[k], right[k]);
#pragma unroll
    for (int k = 0; k < steps; ++k) sums.multiply(left[k], right[k]);
    if (i + S::stages < slabs) {
      __syncthreads();  // all threads have read the stage
      a.take(memory + stage * S::stage, (i + S::stages) * S::slab, g.depth);
      b.take(memory + stage * S::stage + S::chunks_a, (i + S::stages) * S::slab, g.depth);
    }
    copy_async_commit();
    stage = stage + 1 == S::stages ? 0 : stage + 1;
  }

  copy_async_wait<0>();
  __syncthreads();
  float* finished = reinterpret_cast<float*>(memory);
  sums.store(finished + share * S::m * S::sums_line, m, n);
  __syncthreads();
  constexpr int finishing = S::m * S::n / 8 < S::threads ? S::m * S::n / 8 : S::threads;
  if (int(threadIdx.x) < finishing) finish_known<finishing, S::m, S::n, S::sums_line, S::warps_k>(g, batch, 0, m0, n0, finished);
}

// The host's list of tiles is in native/matmul_small.hpp.
using tile_32 = mma_tile<32, 32, 128, 2, 1, 6, 4>;
using tile_64 = mma_tile<64, 64, 64, 2, 2, 6, 2>;

extern "C" __global__ void __launch_bounds__(256) matmul_small_32_nn(const __grid_constant__ gemm g) { small<false, true, tile_32>(g); }
extern "C" __global__ void __launch_bounds__(256) matmul_small_32_nt(const __grid_constant__ gemm g) { small<false, false, tile_32>(g); }
extern "C" __global__ void __launch_bounds__(256) matmul_small_32_tn(const __grid_constant__ gemm g) { small<true, true, tile_32>(g); }
extern "C" __global__ void __launch_bounds__(256) matmul_small_32_tt(const __grid_constant__ gemm g) { small<true, false, tile_32>(g); }
extern "C" __global__ void __launch_bounds__(256) matmul_small_64_nn(const __grid_constant__ gemm g) { small<false, true, tile_64>(g); }
extern "C" __global__ void __launch_bounds__(256) matmul_small_64_nt(const __grid_constant__ gemm g) { small<false, false, tile_64>(g); }
extern "C" __global__ void __launch_bounds__(256) matmul_small_64_tn(const __grid_constant__ gemm g) { small<true, true, tile_64>(g); }
extern "C" __global__ void __launch_bounds__(256) matmul_small_64_tt(const __grid_constant__ gemm g) { small<true, false, tile_64>(g); }

}  // namespace isotope::cuda::gpu
