// architectures: 90a
// flags: -fmad=false
// y = a b of f32 on tensor cores, at the accuracy of f32. A number x is the sum of three of bf16, which have 8 bits each: x1 = bf16(x),
// x2 = bf16(x - x1), x3 = bf16(x - x1 - x2), each rounded to nearest even. So
//   a b = a1 b1 + (a1 b2 + a2 b1) + (a2 b2 + a1 b3 + a3 b1) + e,   |e| <= 2^-24 |a b|, on average less than 2^-28 |a b|.
// Tensor cores cut sums in f32 toward zero where multiply-adds round. So the sums of each slab of 64 steps of K are added to others by
// rounded additions, and within a slab the small products come first. Relative L2 errors of 256 x 256 sums, K = 256 to 32768, and those of
// multiply-adds one after the other: normal operands 9e-8 to 42e-8 (29e-8 to 324e-8), positive ones 9e-8 to 31e-8 (22e-8 to 239e-8), normal
// ones times 2^-20 to 2^20 11e-8 to 42e-8 (13e-8 to 129e-8). On average a sum is 6e-8 to 8e-8 of itself closer to zero. Below K = 256,
// multiply-adds may be more accurate. Slabs of 128 have up to 66e-8; nothing moved, up to 2.2e-4. Large and small products in sums of their
// own, or moved apart, gain nothing. Sums that are not finite are computed again by multiply-adds, so infinities, NaN and numbers that
// bf16 rounds to infinity give what f32 gives. Parts below 2^-133 are lost: operands below 2^-110 have fewer bits.
//
// matmul_f32_planes splits b before. Here one block runs on each multiprocessor and walks over tiles of 128 x 128: one thread starts tensor
// copies of a in f32 and the planes of b into two stages, and two warpgroups multiply 64 rows each, splitting a in registers. While one of
// them splits, moves or finishes sums, the other multiplies. Bound by tensor cores. Planes of a in shared memory were as fast, but writing
// them takes 23 us for 16384 x 384.
#include "matmul_f32_hopper_finish.cuh"

namespace isotope::cuda::gpu {
namespace hopper {

/// Copies the tiles of all slabs into the two stages. In a cluster each block copies half of b's planes for both.
template <bool CrossA, bool CrossB> __device__ __forceinline__ void produce(const matmul_f32_hopper& a, const f32_layout& l) {
  constexpr int BN = f32_layout::BN;
  walker w(a);
  part p;
  ring r;
  const int rank = int(blockIdx.x % unsigned(a.cluster));
  while (w.next<BN>(a, p)) {
    for (int slab = p.first; slab < p.end; ++slab) {
      barrier_wait(l.emptied(r.stage), r.parity ^ 1);
      const std::uint32_t filled = l.filled(r.stage), to_a = l.a(r.stage), to_b = l.b(r.stage);
      barrier_expect(filled, f32_layout::stage_bytes);
      const int k = slab * BK;
#pragma unroll
      for (int i = 0; i < (CrossA ? 4 : 2); ++i)  // boxes of 32 elements of f32
        tensor_load(to_a + std::uint32_t(CrossA ? i * 8192 : i * 16384), a.a, CrossA ? 2 * (p.row + 32 * i) : 2 * (k + 32 * i),
                    CrossA ? k : p.row, filled);
#pragma unroll
      for (int plane = 2; plane >= 0; --plane)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          if (a.cluster == 2 && half != rank) continue;
#pragma unroll
          for (int i = 0; i < (CrossB ? BN / 64 : 1); ++i) {
            const std::uint32_t to = to_b + std::uint32_t(plane * f32_layout::plane_bytes +
                                                          (CrossB ? i * line_group + half * line_group / 2 : half * BN / 2 * 128));
            const int x = CrossB ? p.column + 64 * i : k, y = CrossB ? k + 32 * half : p.column + half * BN / 2;
            if (a.cluster == 2) tensor_load_all(to, a.b[plane], x, y, filled, 3);
            else tensor_load(to, a.b[plane], x, y, filled);
          }
        }
      r.advance(f32_layout::stages);
    }
  }
}

/// Multiplies rows 64 group to 64 group + 63 of each tile and finishes them.
template <bool CrossA, bool CrossB> __device__ __forceinline__ void multiply(const matmul_f32_hopper& a, const f32_layout& l, int group) {
  constexpr int BN = f32_layout::BN;
  constexpr std::uint32_t step = CrossB ? 128 : 2;  // 16 further along K, in units of 16 bytes
  const int lane = int(threadIdx.x % 32);
  walker w(a);
  part p;
  ring r;
  float d[BN / 2], sums[BN / 2];
  while (w.next<BN>(a, p)) {
    prefetch_operands(a, p, group);
#pragma unroll
    for (int i = 0; i < BN / 2; ++i) sums[i] = 0.0f;
    for (int slab = p.first; slab < p.end; ++slab) {
      barrier_wait(l.filled(r.stage), r.parity);
      split_fragment f[BK / 16];
#pragma unroll
      for (int k = 0; k < BK / 16; ++k) read_fragment<CrossA>(l.a(r.stage), group, k, f[k]);
      const auto product = [&](int i, int j, bool first) {
        const std::uint64_t from = matrix_descriptor<CrossB>(l.b(r.stage) + std::uint32_t(j * f32_layout::plane_bytes), line_group);
#pragma unroll
        for (int k = 0; k < BK / 16; ++k) wgmma_bf16<CrossB>(d, f[k].of[i], from + k * step, !first || k != 0);
      };
      wgmma_fence();
      product(2, 0, true);
      product(1, 1, false);
      product(0, 2, false);
      product(1, 0, false);
      product(0, 1, false);
      product(0, 0, false);
      wgmma_commit();
      wgmma_wait<0>();
      hold(d);
      if (lane < a.cluster) barrier_arrive(l.emptied(r.stage), std::uint32_t(lane));
      r.advance(f32_layout::stages);
#pragma unroll
      for (int i = 0; i < BN / 2; ++i) sums[i] = __fadd_rn(sums[i], d[i]);
    }
    finish<CrossA, CrossB>(a, p, group, sums);
  }
}

template <bool CrossA, bool CrossB> __device__ __forceinline__ void run(const matmul_f32_hopper& a) {
  const f32_layout l(shared_address(dynamic_shared()));
  if (threadIdx.x == 0) {
    for (int i = 0; i < f32_layout::stages; ++i) {
      barrier_init(l.filled(i), 1);
      barrier_init(l.emptied(i), std::uint32_t(8 * a.cluster));  // the multiplying warps of the cluster
    }
    barrier_init_fence();
  }
  __syncthreads();
  cluster_sync();
  const int warpgroup = int(threadIdx.x / 128);
  if (warpgroup > 0) {
    take_registers<240>();
    multiply<CrossA, CrossB>(a, l, warpgroup - 1);
  } else {
    give_registers<24>();
    if (threadIdx.x == 0) produce<CrossA, CrossB>(a, l);
  }
  __syncwarp();
  cluster_sync();  // a block's shared memory must live until the other has stopped writing to it
}

}  // namespace hopper

extern "C" __global__ void __launch_bounds__(384) matmul_f32_hopper_nt(const __grid_constant__ matmul_f32_hopper a) {
  hopper::run<false, false>(a);
}
extern "C" __global__ void __launch_bounds__(384) matmul_f32_hopper_nn(const __grid_constant__ matmul_f32_hopper a) {
  hopper::run<false, true>(a);
}
extern "C" __global__ void __launch_bounds__(384) matmul_f32_hopper_tn(const __grid_constant__ matmul_f32_hopper a) {
  hopper::run<true, true>(a);
}
extern "C" __global__ void __launch_bounds__(384) matmul_f32_hopper_tt(const __grid_constant__ matmul_f32_hopper a) {
  hopper::run<true, false>(a);
}
/// Splits a matrix into three planes; a thread has eight elements of a line.
extern "C" __global__ void __launch_bounds__(256) matmul_f32_planes(const __grid_constant__ matmul_planes a) {
  const std::int64_t eights = a.pitch / 8, i = item(), line = i / eights;
  if (line >= a.lines) return;
  const int first = int(i % eights) * 8;
  const float* from = pointer<const float>(a.from) + line * a.line + first;
  float x[8] = {};
  if (first + 8 <= a.length) {
    const float4 u = reinterpret_cast<const float4*>(from)[0], v = reinterpret_cast<const float4*>(from)[1];
    x[0] = u.x, x[1] = u.y, x[2] = u.z, x[3] = u.w, x[4] = v.x, x[5] = v.y, x[6] = v.z, x[7] = v.w;
  } else {
#pragma unroll
    for (int q = 0; q < 8; ++q)
      if (first + q < a.length) x[q] = from[q];
  }
  uint4 y[3];
  hopper::split_pair(x[0], x[1], y[0].x, y[1].x, y[2].x);
  hopper::split_pair(x[2], x[3], y[0].y, y[1].y, y[2].y);
  hopper::split_pair(x[4], x[5], y[0].z, y[1].z, y[2].z);
  hopper::split_pair(x[6], x[7], y[0].w, y[1].w, y[2].w);
#pragma unroll
  for (int k = 0; k < 3; ++k) *pointer<uint4>(a.to + std::uint64_t(k * a.plane + 2 * (line * a.pitch + first))) = y[k];
}

}  // namespace isotope::cuda::gpu
