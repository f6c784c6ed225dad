// flags: -fmad=false
//
// A matmul of bf16 operands with 17 to 64 rows whose operands have lines along K, as in decoding of many sequences. Bound by latency:
// from the end of the kernel that gives A to the end of this one. So each warp has a part of K, and reads its elements of B into
// registers before the kernels that this one depends on have ended; then one trip to A follows, products, and one exchange of sums
// through shared memory, which adds those of the warps in their order. A thread reads chunks of 16 bytes of A and B and passes them to
// mma.sync as they are, as in matmul_rows_mma.cu. Tried on an H200 and slower: operands in shared memory, and clusters whose blocks
// divide K.
#include "device/early.cuh"
#include "device/mma.cuh"
#include "gemm/few_rows.cuh"

#include "matmul_rows_tile.cuh"

namespace isotope::cuda::gpu {

/// A block has 16 Tiles rows and 8 Groups columns. Steps: of 32 along K, of a warp, whose elements of A are in flight together; Turns:
/// times that a warp does them.
template <int Tiles, int Groups, int Steps, int Turns, int Warps> __device__ inline void multiply_tile_of_rows(const gemm& g) {
  constexpr int rows = 16 * Tiles, columns = 8 * Groups, threads = 32 * Warps, line = columns + 4;
  float* warp_sums = reinterpret_cast<float*>(dynamic_shared());  // (Warps, rows, line)
  start_dependents();
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, group = lane / 4, quad = lane % 4;
  const int n0 = int(blockIdx.x) * columns, m0 = int(blockIdx.y) * rows;
  const int all = g.depth / 32, begin = all * warp / Warps, count = all * (warp + 1) / Warps - begin;
  uint4 w[Turns * Steps][Groups];
#pragma unroll
  for (int j = 0; j < Groups; ++j) {  // sums of rows and columns that do not exist are not used
    const int n = n0 + 8 * j + group < g.columns ? n0 + 8 * j + group : g.columns - 1;
    const std::uint16_t* from = pointer<const std::uint16_t>(g.b.at) + n * g.b.line + 32 * begin + 8 * quad;
#pragma unroll
    for (int i = 0; i < Turns * Steps; ++i)
      if (i < count) w[i][j] = load_once(from + 32 * i);
  }
  constexpr int eights = columns / 8, items = rows * eights;
  const auto row_of = [&](int item) { return m0 + item / eights; };
  const auto column_of = [&](int item) { return n0 + item % eights * 8; };
  const bool reads_bias = g.fast == case_bias || g.fast == case_bias_residual || g.fast == case_bias_gelu;
  float bias[8] = {};
  const int item = int(threadIdx.x);
  const bool inside = item < items && row_of(item) < g.rows && column_of(item) < g.columns;
  if (reads_bias && inside) load_eight(g.operands[0].at, column_of(item), bf16, bias);
#if !defined(ISOTOPE_EMULATED_DEVICE)
  asm volatile("" ::"f"(g.alpha), "l"(g.out[0]), "r"(g.steps), "r"(int(g.chain[0].store)));
#endif
  wait_for_dependencies();
  uint4 dense{0, 0, 0, 0};
  float old[8];
  const auto load_dense = [&](int e) {
    const std::int64_t at = std::int64_t(row_of(e)) * g.columns + column_of(e);
    if (g.fast == case_residual) load_end_operands<case_residual>(g, at, dense, old);
    if (g.fast == case_bias_residual) load_end_operands<case_bias_residual>(g, at, dense, old);
  };
  if (inside) load_dense(item);
  float sums[Tiles][Groups][4];
#pragma unroll
  for (int t = 0; t < Tiles; ++t)
#pragma unroll
    for (int j = 0; j < Groups; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q) sums[t][j][q] = 0.0f;
#pragma unroll
  for (int turn = 0; turn < Turns; ++turn) {
    uint4 x[Steps][2 * Tiles];
#pragma unroll
    for (int h = 0; h < 2 * Tiles; ++h) {
      const int m = m0 + 8 * h + group < g.rows ? m0 + 8 * h + group : g.rows - 1;
      const std::uint16_t* from = pointer<const std::uint16_t>(g.a.at) + m * g.a.line + 32 * (begin + turn * Steps) + 8 * quad;
#pragma unroll
      for (int i = 0; i < Steps; ++i)
        if (turn * Steps + i < count) x[i][h] = *reinterpret_cast<const uint4*>(from + 32 * i);
    }
#pragma unroll
    for (int i = 0; i < Steps; ++i) {
      if (turn * Steps + i >= count) continue;
#pragma unroll
      for (int t = 0; t < Tiles; ++t) {
        const uint4 &low = x[i][2 * t], &high = x[i][2 * t + 1];
        const std::uint32_t first[4] = {low.x, high.x, low.y, high.y}, second[4] = {low.z, high.z, low.w, high.w};
#pragma unroll
        for (int j = 0; j < Groups; ++j) {
          const uint4& y = w[turn * Steps + i][j];
          const std::uint32_t a[2] = {y.x, y.y}, b[2] = {y.z, y.w};
          mma_16x8x16_bf16(sums[t][j], first, a);
          mma_16x8x16_bf16(sums[t][j], second, b);
        }
      }
    }
  }
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
      if (reads_bias) load_eight(g.operands[0].at, n, bf16, bias);
      load_dense(e);
    }
    float total[8];
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
extern "C" __global__ void __launch_bounds__(256, 1) matmul_rows_tile_16x48(const __grid_constant__ gemm g) {
  multiply_tile_of_rows<1, 6, 3, 1, 8>(g);
}
extern "C" __global__ void __launch_bounds__(256, 1) matmul_rows_tile_32x48(const __grid_constant__ gemm g) {
  multiply_tile_of_rows<2, 6, 3, 1, 8>(g);
}
extern "C" __global__ void __launch_bounds__(512, 1) matmul_rows_tile_deep_16x16(const __grid_constant__ gemm g) {
  multiply_tile_of_rows<1, 2, 3, 2, 16>(g);
}
extern "C" __global__ void __launch_bounds__(256, 1) matmul_rows_tile_deep_32x16(const __grid_constant__ gemm g) {
  multiply_tile_of_rows<2, 2, 4, 3, 8>(g);
}

}  // namespace isotope::cuda::gpu
