// architectures: 90a
// flags: -fmad=false
// A gemm of bf16 operands in any memory order. One block runs on each multiprocessor and walks over tiles of 128 rows and BN columns: one
// thread starts tensor copies into a ring of stages of 64 along K, two warpgroups multiply 64 rows each (wgmma), and a fourth warpgroup
// finishes the tile before: sums are rounded to bf16 into shared memory, so bias, activation, reads and writes of global memory overlap
// with the next tile's products. Bound by tensor cores where K > 600 or so, by memory below. Two blocks of a cluster share the columns of
// b, which halves the larger part of the reads from the L2 cache. Kernels named direct write sums in f32 from registers. They are apart
// because the compiler finds too few registers for both ways out in one kernel, and then makes each product wait for the one before.
#include "../device/wgmma.cuh"
#include "matmul_hopper_epilogue.cuh"

namespace isotope::cuda::gpu {
namespace hopper {

/// Copies the tiles of all slabs into the ring. In a cluster each block copies half of b for both.
template <int BN, bool CrossA, bool CrossB> __device__ __forceinline__ void produce(const matmul_hopper& a, const layout<BN>& l) {
  walker w(a);
  part p;
  ring r;
  const int rank = int(blockIdx.x % unsigned(a.cluster));
  tensor_prefetch(a.a);
  tensor_prefetch(a.b);
  while (w.next<BN>(a, p)) {
    for (int slab = p.first; slab < p.end; ++slab) {
      barrier_wait(l.emptied(r.stage), r.parity ^ 1);
      const std::uint32_t filled = l.filled(r.stage), to_a = l.a(r.stage), to_b = l.b(r.stage);
      barrier_expect(filled, layout<BN>::stage_bytes);
      const int k = slab * BK;
      if constexpr (CrossA) {
        tensor_load(to_a, a.a, p.row, k, filled);
        tensor_load(to_a + line_group, a.a, p.row + 64, k, filled);
      } else {
        tensor_load(to_a, a.a, k, p.row, filled);
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if (a.cluster == 2 && half != rank) continue;
        constexpr int boxes = CrossB ? BN / 64 : 1;
#pragma unroll
        for (int i = 0; i < boxes; ++i) {
          const std::uint32_t to = to_b + std::uint32_t(CrossB ? i * line_group + half * line_group / 2 : half * BN / 2 * 128);
          const int x = CrossB ? p.column + 64 * i : k, y = CrossB ? k + 32 * half : p.column + half * BN / 2;
          if (a.cluster == 2) tensor_load_all(to, a.b, x, y, filled, 3);
          else tensor_load(to, a.b, x, y, filled);
        }
      }
      r.advance(a.stages);
    }
  }
}

/// Puts sums d of `Columns` columns from column `first` of a tile into shared memory, in bf16.
template <int BN, int Columns>
__device__ __forceinline__ void share_sums(const matmul_hopper& a, const layout<BN>& l, int group, int first,
                                           const float (&d)[Columns / 2]) {
  const int lane = int(threadIdx.x % 32), row = int(threadIdx.x % 128) / 32 * 16 + lane % 16;
  const std::uint32_t to = l.sums_of(group) + std::uint32_t(row * 128 + first / 64 * line_group);
#pragma unroll
  for (int i = 0; i < Columns / 8; i += 2) {
    const std::uint32_t piece = std::uint32_t(i % 8 + lane / 16) ^ std::uint32_t(row % 8);
    const auto pair = [&](int k) { return bf16_pair(__fmul_rn(a.alpha, d[4 * i + k]), __fmul_rn(a.alpha, d[4 * i + k + 1])); };
    store_matrix_x4(to + std::uint32_t(i / 8 * line_group) + piece * 16, pair(0), pair(2), pair(4), pair(6));
  }
}
/// Writes such sums to global memory, in f32: to y, or to the partial sums.
template <int BN, int Columns>
__device__ __forceinline__ void write_sums(const matmul_hopper& a, const part& p, int group, int first, const float (&d)[Columns / 2]) {
  const int t = int(threadIdx.x % 128), lane = t % 32, warp = t / 32;
  if (a.parts > 1) {
    float4* to = partial_sums<BN>(a, p.slot) + (group * (BN / 8) + first / 8) * 128 + t;
#pragma unroll
    for (int i = 0; i < Columns / 8; ++i) to[i * 128] = make_float4(d[4 * i], d[4 * i + 1], d[4 * i + 2], d[4 * i + 3]);
  } else {
    const int row = p.row + 64 * group + 16 * warp + lane / 4, column = p.column + first + lane % 4 * 2;
    if (a.accumulate != 0) write_sums<Columns, true>(a, d, row, column);
    else write_sums<Columns, false>(a, d, row, column);
  }
}

/// Multiplies rows 64 group to 64 group + 63 of each tile; the sums go to global memory.
template <int BN, bool CrossA, bool CrossB>
__device__ __forceinline__ void multiply(const matmul_hopper& a, const layout<BN>& l, int group) {
  constexpr int halves = BN == 256 ? 2 : 1, columns = BN / halves;
  constexpr std::uint32_t step_a = CrossA ? 128 : 2, step_b = CrossB ? 128 : 2;  // 16 further along K, in units of 16 bytes
  const int lane = int(threadIdx.x % 32);
  walker w(a);
  part p;
  ring r;
  float d[halves][columns / 2];
  while (w.next<BN>(a, p)) {
    int before = 0;
    for (int slab = p.first; slab < p.end; ++slab) {
      barrier_wait(l.filled(r.stage), r.parity);
      const std::uint64_t from_a = matrix_descriptor<CrossA>(l.a(r.stage) + std::uint32_t(group * line_group), line_group);
      const std::uint64_t from_b = matrix_descriptor<CrossB>(l.b(r.stage), line_group);
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < BK / 16; ++k) wgmma_bf16<CrossA, CrossB>(d, from_a + k * step_a, from_b + k * step_b, slab != p.first || k != 0);
      wgmma_commit();
      if (slab != p.first) {
        wgmma_wait<1>();
        if (lane < a.cluster) barrier_arrive(l.emptied(before), std::uint32_t(lane));
      }
      before = r.stage;
      r.advance(a.stages);
    }
    wgmma_wait<0>();
    if (lane < a.cluster) barrier_arrive(l.emptied(before), std::uint32_t(lane));
#pragma unroll
    for (int half = 0; half < halves; ++half) {
      hold(d[half]);
      write_sums<BN, columns>(a, p, group, half * columns, d[half]);
    }
  }
}
/// The same where the sums go to shared memory. The last slab of 256 columns is multiplied in two halves, and the first half leaves the
/// registers while the second is multiplied.
template <int BN, bool CrossA, bool CrossB>
__device__ __forceinline__ void multiply_and_share(const matmul_hopper& a, const layout<BN>& l, int group) {
  constexpr int halves = BN == 256 ? 2 : 1, columns = BN / halves;
  constexpr std::uint32_t step_a = CrossA ? 128 : 2, step_b = CrossB ? 128 : 2;  // 16 further along K, in units of 16 bytes
  const int lane = int(threadIdx.x % 32);
  walker w(a);
  part p;
  ring r;
  std::uint32_t parity = 0;  // of the sums in shared memory
  float d[halves][columns / 2];
  while (w.next<BN>(a, p)) {
    int before = 0;
    int slab = p.first;
    for (; slab + 1 < p.end; ++slab) {
      barrier_wait(l.filled(r.stage), r.parity);
      const std::uint64_t from_a = matrix_descriptor<CrossA>(l.a(r.stage) + std::uint32_t(group * line_group), line_group);
      const std::uint64_t from_b = matrix_descriptor<CrossB>(l.b(r.stage), line_group);
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < BK / 16; ++k) wgmma_bf16<CrossA, CrossB>(d, from_a + k * step_a, from_b + k * step_b, slab != p.first || k != 0);
      wgmma_commit();
      if (slab != p.first) {
        wgmma_wait<1>();
        if (lane < a.cluster) barrier_arrive(l.emptied(before), std::uint32_t(lane));
      }
      before = r.stage;
      r.advance(a.stages);
    }
    barrier_wait(l.filled(r.stage), r.parity);
    const std::uint64_t from_a = matrix_descriptor<CrossA>(l.a(r.stage) + std::uint32_t(group * line_group), line_group);
    wgmma_fence();
#pragma unroll
    for (int half = 0; half < halves; ++half) {
      const std::uint64_t from_b = matrix_descriptor<CrossB>(l.b(r.stage) + std::uint32_t(half * columns * 128), line_group);
#pragma unroll
      for (int k = 0; k < BK / 16; ++k)
        wgmma_bf16<CrossA, CrossB>(d[half], from_a + k * step_a, from_b + k * step_b, slab != p.first || k != 0);
      wgmma_commit();
    }
    if (slab != p.first) {
      wgmma_wait<halves>();
      if (lane < a.cluster) barrier_arrive(l.emptied(before), std::uint32_t(lane));
    }
    before = r.stage;
    r.advance(a.stages);
    barrier_wait(l.read(group), parity ^ 1);
    parity ^= 1;
    if constexpr (halves == 2) {
      wgmma_wait<1>();
      hold(d[0]);
      share_sums<BN, columns>(a, l, group, 0, d[0]);
    }
    wgmma_wait<0>();
    hold(d[halves - 1]);
    if (lane < a.cluster) barrier_arrive(l.emptied(before), std::uint32_t(lane));
    share_sums<BN, columns>(a, l, group, BN - columns, d[halves - 1]);
    __syncwarp();
    if (lane == 0) barrier_arrive(l.written(group));
  }
}

/// `Warps` warps finish tiles: all that are left of the copying warp's warpgroup and, if there are 512 threads, of the next one. The
/// compiler insists on 154 registers from the start for an instruction that multiplies 256 columns, so those kernels have 384 threads.
template <int BN, int Warps, bool CrossA, bool CrossB, bool Shared> __device__ __forceinline__ void run(const matmul_hopper& a) {
  const layout<BN> l(shared_address(dynamic_shared()), a);
  if (threadIdx.x == 0) {
    for (int i = 0; i < a.stages; ++i) {
      barrier_init(l.filled(i), 1);
      barrier_init(l.emptied(i), std::uint32_t(8 * a.cluster));  // the multiplying warps of the cluster
    }
    for (int i = 0; i < 2; ++i) {
      barrier_init(l.written(i), 4);
      barrier_init(l.read(i), Warps);
    }
    barrier_init_fence();
  }
  __syncthreads();
  cluster_sync();
  constexpr int others = (Warps + 1) / 4;  // warpgroups that do not multiply
  const int warpgroup = int(threadIdx.x / 128), warp = int(threadIdx.x / 32);
  if (warpgroup >= others) {
    take_registers<others == 1 ? 192 : 168>();
    if constexpr (Shared) multiply_and_share<BN, CrossA, CrossB>(a, l, warpgroup - others);
    else multiply<BN, CrossA, CrossB>(a, l, warpgroup - others);
  } else {
    give_registers<others == 1 ? 120 : 88>();
    if (threadIdx.x == 0) produce<BN, CrossA, CrossB>(a, l);
    if constexpr (Shared) {
      if (warp != 0) finish<BN, Warps>(a, l, warp - 1);
    }
  }
  __syncwarp();
  cluster_sync();  // a block's shared memory must live until the other has stopped writing to it
}

}  // namespace hopper

// Memory order of the operands: n, lines along K; t, lines along M or N. The name has a's letter as if lines were rows of a, and b's as
// if they were its columns: nt is a (M, K) times b (N, K) transposed, nn a (M, K) times b (K, N), tn a (K, M) transposed times b (K, N).
extern "C" __global__ void __launch_bounds__(384) matmul_hopper_nt_256(const __grid_constant__ matmul_hopper a) {
  hopper::run<256, 3, false, false, true>(a);
}
extern "C" __global__ void __launch_bounds__(384) matmul_hopper_direct_nt_256(const __grid_constant__ matmul_hopper a) {
  hopper::run<256, 3, false, false, false>(a);
}
extern "C" __global__ void __launch_bounds__(384) matmul_hopper_nn_256(const __grid_constant__ matmul_hopper a) {
  hopper::run<256, 3, false, true, true>(a);
}
extern "C" __global__ void __launch_bounds__(384) matmul_hopper_direct_nn_256(const __grid_constant__ matmul_hopper a) {
  hopper::run<256, 3, false, true, false>(a);
}
extern "C" __global__ void __launch_bounds__(384) matmul_hopper_tn_256(const __grid_constant__ matmul_hopper a) {
  hopper::run<256, 3, true, true, true>(a);
}
extern "C" __global__ void __launch_bounds__(384) matmul_hopper_direct_tn_256(const __grid_constant__ matmul_hopper a) {
  hopper::run<256, 3, true, true, false>(a);
}
extern "C" __global__ void __launch_bounds__(512) matmul_hopper_nt_192(const __grid_constant__ matmul_hopper a) {
  hopper::run<192, 7, false, false, true>(a);
}
extern "C" __global__ void __launch_bounds__(512) matmul_hopper_direct_nt_192(const __grid_constant__ matmul_hopper a) {
  hopper::run<192, 7, false, false, false>(a);
}
extern "C" __global__ void __launch_bounds__(512) matmul_hopper_nn_192(const __grid_constant__ matmul_hopper a) {
  hopper::run<192, 7, false, true, true>(a);
}
extern "C" __global__ void __launch_bounds__(512) matmul_hopper_direct_nn_192(const __grid_constant__ matmul_hopper a) {
  hopper::run<192, 7, false, true, false>(a);
}
extern "C" __global__ void __launch_bounds__(512) matmul_hopper_tn_192(const __grid_constant__ matmul_hopper a) {
  hopper::run<192, 7, true, true, true>(a);
}
extern "C" __global__ void __launch_bounds__(512) matmul_hopper_direct_tn_192(const __grid_constant__ matmul_hopper a) {
  hopper::run<192, 7, true, true, false>(a);
}
extern "C" __global__ void __launch_bounds__(512) matmul_hopper_nt_128(const __grid_constant__ matmul_hopper a) {
  hopper::run<128, 7, false, false, true>(a);
}
extern "C" __global__ void __launch_bounds__(512) matmul_hopper_direct_nt_128(const __grid_constant__ matmul_hopper a) {
  hopper::run<128, 7, false, false, false>(a);
}
extern "C" __global__ void __launch_bounds__(512) matmul_hopper_nn_128(const __grid_constant__ matmul_hopper a) {
  hopper::run<128, 7, false, true, true>(a);
}
extern "C" __global__ void __launch_bounds__(512) matmul_hopper_direct_nn_128(const __grid_constant__ matmul_hopper a) {
  hopper::run<128, 7, false, true, false>(a);
}
extern "C" __global__ void __launch_bounds__(512) matmul_hopper_tn_128(const __grid_constant__ matmul_hopper a) {
  hopper::run<128, 7, true, true, true>(a);
}
extern "C" __global__ void __launch_bounds__(512) matmul_hopper_direct_tn_128(const __grid_constant__ matmul_hopper a) {
  hopper::run<128, 7, true, true, false>(a);
}
extern "C" __global__ void __launch_bounds__(128) matmul_hopper_reduce_256(const __grid_constant__ matmul_hopper a) {
  hopper::reduce<256>(a);
}
extern "C" __global__ void __launch_bounds__(128) matmul_hopper_reduce_192(const __grid_constant__ matmul_hopper a) {
  hopper::reduce<192>(a);
}
extern "C" __global__ void __launch_bounds__(128) matmul_hopper_reduce_128(const __grid_constant__ matmul_hopper a) {
  hopper::reduce<128>(a);
}

}  // namespace isotope::cuda::gpu
