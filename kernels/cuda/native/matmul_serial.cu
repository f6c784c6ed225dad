// flags: -fmad=false
//
// A matmul of bf16 operands with few rows whose sums are added along K one after the other, as the tiles of matmul_mma.cu add them: a row has the same bits
// however many there are. Bound by latency: of a trip to memory, and of K / 16 products, each of which waits for the one before. So all of K is requested at once,
// by twice as many threads as multiply; a warp has 16 x 16 sums, and tiles are as small as copies of 16 bytes allow: 16 rows only where lines of A run along K.
#include "native/matmul_small.cuh"

namespace isotope::cuda::gpu {

// The host's copy of these numbers is in native/matmul_serial.hpp.
template <int Rows> struct serial_tile : mma_tile<Rows, 32, 64, Rows / 16, 2, 24> {
  static constexpr int threads = 8 * Rows, multiplying = 4 * Rows, group = 4, groups = 6;  // group: slabs that are waited for together
};

template <bool ACross, bool BCross, int Rows> __device__ inline void serial(const gemm& g) {
  using S = serial_tile<Rows>;
  uint4* memory = reinterpret_cast<uint4*>(dynamic_shared());  // (slabs, A then B), then the sums
  const int m0 = int(blockIdx.x) * S::m, n0 = int(blockIdx.y) * S::n, batch = g.first + int(blockIdx.z);
  const int warp = int(threadIdx.x) / 32, m = warp / S::warps_n * S::warp_m, n = warp % S::warps_n * S::warp_n;
  const bool multiplies = int(threadIdx.x) < S::multiplying;
  const auto start_of = [&](const gemm_operand& x) { return batch == 0 ? 0 : batch_offset(batch, g.inner, x.outer, x.inner); };
  mma_mover<ACross, S::m, S> a(g.a, start_of(g.a), m0, g.rows, 0);
  mma_mover<BCross, S::n, S> b(g.b, start_of(g.b), n0, g.columns, 0);
  mma_sums<ACross, BCross, S> sums;
  sums.clear();

  const int slabs = (g.depth + S::slab - 1) / S::slab;
  if (g.early != 0) start_dependents();
  for (int i = 0; i < slabs; ++i) b.take(memory + i * S::stage + S::chunks_a, i * S::slab, g.depth);
  if (g.early != 0) wait_for_dependencies();  // B was requested before the kernels that this one depends on have ended
#pragma unroll
  for (int k = 0; k < S::groups; ++k) {
    for (int i = k * S::group; i < (k + 1) * S::group && i < slabs; ++i) a.take(memory + i * S::stage, i * S::slab, g.depth);
    copy_async_commit();
  }
  small_end<S> end(g, batch, m0, n0);
  const auto multiply = [&](int k) {  // group k
    const int first = k * S::group, last = first + S::group < slabs ? first + S::group : slabs;
    std::uint32_t left[2][S::units_m][4], right[2][S::units_n][4];
    const auto load = [&](int i, int step) {
      const uint4* at = memory + i * S::stage;
      sums.load_fragments(at, at + S::chunks_a, step, m, n, left[step % 2], right[step % 2]);
    };
    load(first, 0);
#pragma unroll 1
    for (int i = first; i < last; ++i)
#pragma unroll
      for (int step = 0; step < S::slab / 16; ++step) {
        if (step + 1 < S::slab / 16) load(i, step + 1);
        else if (i + 1 < last) load(i + 1, 0);
        sums.multiply(left[step % 2], right[step % 2]);
      }
  };
#pragma unroll
  for (int k = 0; k < S::groups; ++k) {
    if (k * S::group >= slabs) break;
    switch (k) {
      case 0: copy_async_wait<5>(); break;
      case 1: copy_async_wait<4>(); break;
      case 2: copy_async_wait<3>(); break;
      case 3: copy_async_wait<2>(); break;
      case 4: copy_async_wait<1>(); break;
      default: copy_async_wait<0>(); break;
    }
    __syncthreads();  // the group is there for all threads
    if (multiplies) multiply(k);
  }

  __syncthreads();  // all warps have read the slabs
  float* finished = reinterpret_cast<float*>(memory);
  if (multiplies) sums.store(finished, m, n);
  __syncthreads();
  end.finish(finished);
}

extern "C" __global__ void __launch_bounds__(128) matmul_serial_16_nn(const __grid_constant__ gemm g) { serial<false, true, 16>(g); }
extern "C" __global__ void __launch_bounds__(128) matmul_serial_16_nt(const __grid_constant__ gemm g) { serial<false, false, 16>(g); }
extern "C" __global__ void __launch_bounds__(256) matmul_serial_32_nn(const __grid_constant__ gemm g) { serial<false, true, 32>(g); }
extern "C" __global__ void __launch_bounds__(256) matmul_serial_32_nt(const __grid_constant__ gemm g) { serial<false, false, 32>(g); }
extern "C" __global__ void __launch_bounds__(256) matmul_serial_32_tn(const __grid_constant__ gemm g) { serial<true, true, 32>(g); }
extern "C" __global__ void __launch_bounds__(256) matmul_serial_32_tt(const __grid_constant__ gemm g) { serial<true, false, 32>(g); }

}  // namespace isotope::cuda::gpu
