// architectures: 90a
// flags: -fmad=false
//
// The products of matmul_rows_tile.cu but those of 32 x 48, with the same bits, on Hopper: bulk copies bring a block's elements of B into shared memory before the kernels that this
// one depends on have ended. So threads need few registers, and the block fits beside those of the kernels before and behind it.
#include "device/early.cuh"
#include "device/hopper.cuh"
#include "device/mma.cuh"
#include "rows/vectors.cuh"

#include "matmul_rows_hopper.h"
#include "matmul_rows_tile.cuh"

namespace isotope::cuda::gpu {

/// A block has 16 Tiles rows and 8 Groups columns. Steps: of 32 along K, of a warp; Flight: of them whose elements of A are on their way together.
template <int Tiles, int Groups, int Steps, int Flight, int Warps> __device__ inline void multiply_copied_tile(const gemm& g) {
  constexpr int rows = 16 * Tiles, columns = 8 * Groups, threads = 32 * Warps, line = columns + 4;
  float* warp_sums = reinterpret_cast<float*>(dynamic_shared() + matmul_rows_hopper_first);  // (Warps, rows, line), in the place of B
  start_dependents();
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, group = lane / 4, quad = lane % 4;
  const int n0 = int(blockIdx.x) * columns, m0 = int(blockIdx.y) * rows;
  const std::uint32_t ready = shared_address(dynamic_shared()), weights = ready + matmul_rows_hopper_first;
  const std::uint32_t weight_line = std::uint32_t(2 * g.depth + matmul_rows_hopper_pad);
  if (warp == 0) {
    const int count = g.columns - n0 < columns ? g.columns - n0 : columns;
    if (lane == 0) {
      barrier_init(ready, 1);
      barrier_init_fence();
      barrier_expect(ready, std::uint32_t(2 * count * g.depth));
    }
    __syncwarp();
    for (int n = lane; n < count; n += 32)
      bulk_load(weights + std::uint32_t(n) * weight_line, g.b.at + std::uint64_t(2 * (n0 + n) * g.b.line), std::uint32_t(2 * g.depth),
                ready);
  }
  constexpr int eights = columns / 8, items = rows * eights;
  const auto row_of = [&](int item) { return m0 + item / eights; };
  const auto column_of = [&](int item) { return n0 + item % eights * 8; };
  const bool reads_bias = g.fast == case_bias || g.fast == case_bias_residual || g.fast == case_bias_gelu;
  uint4 packed_bias{0, 0, 0, 0};
  const int item = int(threadIdx.x);
  const bool inside = item < items && row_of(item) < g.rows && column_of(item) < g.columns;
  const auto load_bias = [&](int e) { packed_bias = *pointer<const uint4>(g.operands[0].at + std::uint64_t(2 * column_of(e))); };
  if (reads_bias && inside) load_bias(item);
  const int all = g.depth / 32, begin = all * warp / Warps, count = all * (warp + 1) / Warps - begin;
  float sums[Tiles][Groups][4];
#pragma unroll
  for (int t = 0; t < Tiles; ++t)
#pragma unroll
    for (int j = 0; j < Groups; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q) sums[t][j][q] = 0.0f;
  __syncthreads();  // the barrier is there
  wait_for_dependencies();
  const std::uint16_t* from[2 * Tiles];
#pragma unroll
  for (int h = 0; h < 2 * Tiles; ++h) {
    const int m = m0 + 8 * h + group < g.rows ? m0 + 8 * h + group : g.rows - 1;
    from[h] = pointer<const std::uint16_t>(g.a.at) + m * g.a.line + 32 * begin + 8 * quad;
  }
  uint4 x[Flight][2 * Tiles];
  const auto load_step = [&](int s) {
#pragma unroll
    for (int h = 0; h < 2 * Tiles; ++h)
      if (s < count) x[s % Flight][h] = *reinterpret_cast<const uint4*>(from[h] + 32 * s);
  };
#pragma unroll
  for (int s = 0; s < Flight; ++s) load_step(s);
  uint4 dense{0, 0, 0, 0};
  float old[8];
  const auto load_dense = [&](int e) {
    const std::int64_t at = std::int64_t(row_of(e)) * g.columns + column_of(e);
    if (g.fast == case_residual) load_end_operands<case_residual>(g, at, dense, old);
    if (g.fast == case_bias_residual) load_end_operands<case_bias_residual>(g, at, dense, old);
  };
  if (inside) load_dense(item);
  barrier_wait(ready, 0);
  const std::uint32_t mine = weights + std::uint32_t(group) * weight_line + std::uint32_t(2 * (32 * begin + 8 * quad));
#pragma unroll
  for (int s = 0; s < Steps; ++s) {
    if (s < count) {
      uint4 w[Groups];
#pragma unroll
      for (int j = 0; j < Groups; ++j) w[j] = load_shared_16(mine + std::uint32_t(8 * j) * weight_line + std::uint32_t(64 * s));
#pragma unroll
      for (int t = 0; t < Tiles; ++t) {
        const uint4 &low = x[s % Flight][2 * t], &high = x[s % Flight][2 * t + 1];
        const std::uint32_t first[4] = {low.x, high.x, low.y, high.y}, second[4] = {low.z, high.z, low.w, high.w};
#pragma unroll
        for (int j = 0; j < Groups; ++j) {
          const std::uint32_t a[2] = {w[j].x, w[j].y}, b[2] = {w[j].z, w[j].w};
          mma_16x8x16_bf16(sums[t][j], first, a);
          mma_16x8x16_bf16(sums[t][j], second, b);
        }
      }
    }
    if (s + Flight < Steps) load_step(s + Flight);
  }
  __syncthreads();  // all have read B
#pragma unroll
  for (int t = 0; t < Tiles; ++t)
#pragma unroll
    for (int j = 0; j < Groups; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<float2*>(warp_sums + (warp * rows + 16 * t + 8 * half + group) * line + 8 * j + 2 * quad) =
            float2{sums[t][j][2 * half], sums[t][j][2 * half + 1]};
  __syncthreads();
#pragma unroll 1
  for (int e = item; e < items; e += threads) {
    const int m = row_of(e), n = column_of(e);
    if (m >= g.rows || n >= g.columns) continue;
    if (e != item) {
      if (reads_bias) load_bias(e);
      load_dense(e);
    }
    float total[8], bias[8];
    unpack<bf16>(packed_bias, bias);
#pragma unroll
    for (int k = 0; k < Warps; ++k) {
      const float4* y = reinterpret_cast<const float4*>(warp_sums + (k * rows + e / eights) * line + e % eights * 8);
      const float4 u = y[0], v = y[1];
      const float z[8] = {u.x, u.y, u.z, u.w, v.x, v.y, v.z, v.w};
#pragma unroll
      for (int q = 0; q < 8; ++q) total[q] = k == 0 ? z[q] : plus(total[q], z[q]);
    }
    finish_eight_by_case(g, std::int64_t(m) * g.columns + n, total, bias, dense);
  }
}

// The numbers are the rows and the columns of a block. K is at most 768, of those named deep 3,072.
extern "C" __global__ void __launch_bounds__(256, 2) matmul_rows_hopper_16x48(const __grid_constant__ gemm g) {
  multiply_copied_tile<1, 6, 3, 3, 8>(g);
}
extern "C" __global__ void __launch_bounds__(512, 1) matmul_rows_hopper_deep_16x16(const __grid_constant__ gemm g) {
  multiply_copied_tile<1, 2, 6, 6, 16>(g);
}
extern "C" __global__ void __launch_bounds__(256, 1) matmul_rows_hopper_deep_32x16(const __grid_constant__ gemm g) {
  multiply_copied_tile<2, 2, 12, 8, 8>(g);
}

}  // namespace isotope::cuda::gpu
