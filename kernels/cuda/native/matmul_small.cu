// flags: -fmad=false
//
// A matmul of bf16 operands for products that a device finishes in a few microseconds, for every device from sm_80 on. Bound by latency: the
// start of a block, one trip to memory, the end. So tiles are small, to occupy all multiprocessors; slabs of K are requested at once as far as
// shared memory goes; and the warps of a block share the steps of a slab, so that little is left to do when the last slab arrives. The
// shares are added in a fixed order while sums are finished. Tried on an H100 and slower: tiles of 64 x 64 and 64 x 32, 8 warps to a block.
#include "native/matmul_small.cuh"

namespace isotope::cuda::gpu {

template <bool ACross, bool BCross, class S> __device__ inline void small(const gemm& g) {
  uint4* memory = reinterpret_cast<uint4*>(dynamic_shared());  // (stages, A then B), then the shares of the sums
  const int m0 = int(blockIdx.x) * S::m, n0 = int(blockIdx.y) * S::n;
  const int batch = g.first + int(blockIdx.z);
  constexpr int steps = S::slab / 16 / S::warps_k;  // of a warp in a slab
  const int warp = int(threadIdx.x) / 32, share = warp % S::warps_k, m = warp / S::warps_k / S::warps_n * S::warp_m,
            n = warp / S::warps_k % S::warps_n * S::warp_n;

  const auto start_of = [&](const gemm_operand& x) { return batch == 0 ? 0 : batch_offset(batch, g.inner, x.outer, x.inner); };
  mma_mover<ACross, S::m, S> a(g.a, start_of(g.a), m0, g.rows, 0);
  mma_mover<BCross, S::n, S> b(g.b, start_of(g.b), n0, g.columns, 0);
  mma_sums<ACross, BCross, S> sums;
  sums.clear();

  const int slabs = (g.depth + S::slab - 1) / S::slab;
  const bool early = g.early != 0;  // B is requested before the kernels that this one depends on have ended
  if (early) {
    start_dependents();
#pragma unroll
    for (int i = 0; i < S::stages; ++i)
      if (i < slabs) b.take(memory + i * S::stage + S::chunks_a, i * S::slab, g.depth);
    wait_for_dependencies();
  }
#pragma unroll
  for (int i = 0; i < S::stages; ++i) {
    if (i < slabs) {
      a.take(memory + i * S::stage, i * S::slab, g.depth);
      if (!early) b.take(memory + i * S::stage + S::chunks_a, i * S::slab, g.depth);
    }
    copy_async_commit();
  }
  small_end<S> end(g, batch, m0, n0);
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
  end.finish(finished);
}

// The host's copy of these numbers is in native/matmul_small.hpp.
using small_tile = mma_tile<32, 32, 128, 1, 1, 6, 4>;

extern "C" __global__ void __launch_bounds__(128, 4) matmul_small_nn(const __grid_constant__ gemm g) { small<false, true, small_tile>(g); }
extern "C" __global__ void __launch_bounds__(128, 4) matmul_small_nt(const __grid_constant__ gemm g) { small<false, false, small_tile>(g); }
extern "C" __global__ void __launch_bounds__(128, 4) matmul_small_tn(const __grid_constant__ gemm g) { small<true, true, small_tile>(g); }
extern "C" __global__ void __launch_bounds__(128, 4) matmul_small_tt(const __grid_constant__ gemm g) { small<true, false, small_tile>(g); }

}  // namespace isotope::cuda::gpu
