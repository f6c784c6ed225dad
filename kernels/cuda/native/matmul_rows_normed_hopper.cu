// architectures: 90a
// flags: -fmad=false
//
// A matmul of bf16 operands with 17 to 64 rows that normalises the rows of A itself (gemm::norm), in place of a launch before it. With x a row, mean and rstd its moments, g and s gain
// and shift: y[n] = rstd (sum_k x[k] w[n,k] g[k] - mean sum_k w[n,k] g[k]) + sum_k w[n,k] s[k]. Bound by latency, as matmul_rows_tile.cu, whose blocks these are: what depends on no row
// is computed before the kernels that this one depends on have ended. w g is rounded to bf16 where a launch of its own rounds the normalised row; errors against sums in f64 are the same.
// Moments come from tensor cores, too: products with ones, and the diagonal of the rows' products with each other.
#include "device/early.cuh"
#include "device/mma.cuh"
#include "gemm/few_rows.cuh"
#include "rows/vectors.cuh"

#include "matmul_rows_normed_hopper.h"
#include "matmul_rows_tile.cuh"

namespace isotope::cuda::gpu {

/// A block has 16 Tiles rows and 8 Groups columns.
template <int Tiles, int Groups> struct normed_tile {
  static constexpr int warps = matmul_rows_normed_warps, steps = matmul_rows_normed_depth / 32 / warps, rows = 16 * Tiles,
                       columns = 8 * Groups, line = columns + 4;
  static constexpr std::uint32_t all = 0xffffffffu;

  const gemm& g;
  float* sums;        // (warps, rows, line)
  float2* moments;    // (warps, rows): sums of x and of its squares
  float2* constants;  // (warps, columns): sums of w g and of w s
  int lane, warp, group, quad, n0, m0, first;
  uint4 w[steps][Groups];

  __device__ explicit normed_tile(const gemm& given)
      : g(given),
        sums(reinterpret_cast<float*>(dynamic_shared())),
        moments(reinterpret_cast<float2*>(sums + warps * rows * line)),
        constants(moments + warps * rows),
        lane(int(threadIdx.x) % 32),
        warp(int(threadIdx.x) / 32),
        group(lane / 4),
        quad(lane % 4),
        n0(int(blockIdx.x) * columns),
        m0(int(blockIdx.y) * rows),
        first(32 * steps * warp + 8 * quad) {}

  __device__ void load_weights() {
#pragma unroll
    for (int j = 0; j < Groups; ++j)
#pragma unroll
      for (int i = 0; i < steps; ++i)
        w[i][j] = load_once(pointer<const std::uint16_t>(g.b.at) + (n0 + 8 * j + group) * g.b.line + first + 32 * i);
  }
  /// Multiplies the weights by the gain, and adds up what the mean and the shift are multiplied by.
  __device__ void take_gain() {
    float of_gain[Groups] = {}, of_shift[Groups] = {};
#pragma unroll
    for (int i = 0; i < steps; ++i) {
      float gain[8], shift[8];
      unpack<bf16>(pointer<const uint4>(g.norm.weight)[(first + 32 * i) / 8], gain);
      unpack<bf16>(pointer<const uint4>(g.norm.bias)[(first + 32 * i) / 8], shift);
#pragma unroll
      for (int j = 0; j < Groups; ++j) {
        float v[8];
        unpack<bf16>(w[i][j], v);
#pragma unroll
        for (int q = 0; q < 8; ++q) of_shift[j] = fmaf(v[q], shift[q], of_shift[j]), v[q] *= gain[q];
        w[i][j] = packed<bf16>(v);
        unpack<bf16>(w[i][j], v);
#pragma unroll
        for (int q = 0; q < 8; ++q) of_gain[j] += v[q];
      }
    }
#pragma unroll
    for (int j = 0; j < Groups; ++j) {
#pragma unroll
      for (int apart = 1; apart < 4; apart *= 2)
        of_gain[j] += __shfl_xor_sync(all, of_gain[j], apart), of_shift[j] += __shfl_xor_sync(all, of_shift[j], apart);
      if (quad == 0) constants[warp * columns + 8 * j + group] = float2{of_gain[j], of_shift[j]};
    }
  }
  /// The warp's part of all sums comes to shared memory.
  __device__ void multiply() {
    uint4 x[steps][2 * Tiles];
#pragma unroll
    for (int h = 0; h < 2 * Tiles; ++h) {
      const int m = m0 + 8 * h + group < g.rows ? m0 + 8 * h + group : g.rows - 1;
#pragma unroll
      for (int i = 0; i < steps; ++i)
        x[i][h] = *reinterpret_cast<const uint4*>(pointer<const std::uint16_t>(g.a.at) + m * g.a.line + first + 32 * i);
    }
    float of[Tiles][Groups][4] = {}, ones[Tiles][4] = {}, low_squares[Tiles][4] = {}, high_squares[Tiles][4] = {};
    constexpr std::uint32_t one[2] = {0x3f803f80u, 0x3f803f80u};
#pragma unroll
    for (int i = 0; i < steps; ++i) {
#pragma unroll
      for (int t = 0; t < Tiles; ++t) {
        const uint4 &low = x[i][2 * t], &high = x[i][2 * t + 1];
        const std::uint32_t a[2][4] = {{low.x, high.x, low.y, high.y}, {low.z, high.z, low.w, high.w}};
        const std::uint32_t rows_of_low[2][2] = {{low.x, low.y}, {low.z, low.w}}, rows_of_high[2][2] = {{high.x, high.y}, {high.z, high.w}};
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          mma_16x8x16_bf16(ones[t], a[k], one);
          mma_16x8x16_bf16(low_squares[t], a[k], rows_of_low[k]);
          mma_16x8x16_bf16(high_squares[t], a[k], rows_of_high[k]);
        }
#pragma unroll
        for (int j = 0; j < Groups; ++j) {
          const uint4& y = w[i][j];
          const std::uint32_t b[2][2] = {{y.x, y.y}, {y.z, y.w}};
          mma_16x8x16_bf16(of[t][j], a[0], b[0]);
          mma_16x8x16_bf16(of[t][j], a[1], b[1]);
        }
      }
    }
#pragma unroll
    for (int t = 0; t < Tiles; ++t) {
#pragma unroll
      for (int j = 0; j < Groups; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          *reinterpret_cast<float2*>(sums + (warp * rows + 16 * t + 8 * half + group) * line + 8 * j + 2 * quad) =
              float2{of[t][j][2 * half], of[t][j][2 * half + 1]};
      if (quad != group / 2) continue;  // row `group` of eight has its own column here
      moments[warp * rows + 16 * t + group] = float2{ones[t][0], group % 2 == 0 ? low_squares[t][0] : low_squares[t][1]};
      moments[warp * rows + 16 * t + 8 + group] = float2{ones[t][2], group % 2 == 0 ? high_squares[t][2] : high_squares[t][3]};
    }
  }
  /// Finishes eight columns from column c on of the block's row r.
  __device__ void finish(int r, int c, const uint4& packed_bias) const {
    float total[8] = {}, of_gain[8] = {}, of_shift[8] = {}, bias[8], sum = 0.0f, squares = 0.0f;
    unpack<bf16>(packed_bias, bias);
#pragma unroll
    for (int k = 0; k < warps; ++k) {
      const float4* y = reinterpret_cast<const float4*>(sums + (k * rows + r) * line + c);
      const float4 u = y[0], v = y[1];
      const float z[8] = {u.x, u.y, u.z, u.w, v.x, v.y, v.z, v.w};
      sum += moments[k * rows + r].x, squares += moments[k * rows + r].y;
#pragma unroll
      for (int q = 0; q < 8; ++q) {
        const float2 s = constants[k * columns + c + q];
        total[q] += z[q], of_gain[q] += s.x, of_shift[q] += s.y;
      }
    }
    constexpr float depth = float(matmul_rows_normed_depth);
    const float mean = sum / depth, variance = squares / depth - mean * mean,
                rstd = 1.0f / sqrtf((variance < 0.0f ? 0.0f : variance) + g.norm.epsilon);
#pragma unroll
    for (int q = 0; q < 8; ++q) total[q] = fmaf(total[q] - mean * of_gain[q], rstd, of_shift[q]);
    finish_eight_by_case(g, std::int64_t(m0 + r) * g.columns + n0 + c, total, bias, uint4{0, 0, 0, 0});
  }
};

template <int Tiles, int Groups> __device__ inline void multiply_normed_tile(const gemm& g) {
  using tile = normed_tile<Tiles, Groups>;
  constexpr int eights = Groups, items = tile::rows * eights, threads = 32 * tile::warps;
  start_dependents();
  tile my(g);
  my.load_weights();
  const auto bias_of = [&](int e) { return *pointer<const uint4>(g.operands[0].at + std::uint64_t(2 * (my.n0 + e % eights * 8))); };
  const int item = int(threadIdx.x);
  uint4 bias{0, 0, 0, 0};
  if (item < items) bias = bias_of(item);
  my.take_gain();
  wait_for_dependencies();
  my.multiply();
  __syncthreads();
#pragma unroll 1
  for (int e = item; e < items; e += threads) {
    if (my.m0 + e / eights >= g.rows) continue;
    if (e != item) bias = bias_of(e);
    my.finish(e / eights, e % eights * 8, bias);
  }
}

// The numbers are the rows and the columns of a block.
extern "C" __global__ void __launch_bounds__(256, 1) matmul_rows_normed_16x48(const __grid_constant__ gemm g) {
  multiply_normed_tile<1, 6>(g);
}
extern "C" __global__ void __launch_bounds__(256, 1) matmul_rows_normed_32x48(const __grid_constant__ gemm g) {
  multiply_normed_tile<2, 6>(g);
}

}  // namespace isotope::cuda::gpu
