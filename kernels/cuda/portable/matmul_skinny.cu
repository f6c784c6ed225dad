// flags: -fmad=false
//
// A matmul with at most 4 rows that matmul_rows.cu does not take, because lines of an operand run across K or formats are others. It is
// bound by the bytes of B, which are read once. Where B's lines run along K, a warp has some columns: its lanes read adjacent elements of a
// line, and their sums are added across lanes. Where they run along N, 8 threads have adjacent chunks of a line, and the 32 teams of such
// threads of a block interleave along K; shared memory adds their sums. The order of additions depends only on the shape. A matmul with
// few columns runs as the transposed product.
#include <type_traits>

#include "gemm/few_rows.cuh"

namespace isotope::cuda::gpu {

struct skinny_bf16 {
  static constexpr int chunk = 8;  // elements of 16 bytes
  __device__ static float load_one(std::uint64_t at, std::int64_t i, int) { return bf16_value(pointer<const std::uint16_t>(at)[i]); }
};
struct skinny_f32 {
  static constexpr int chunk = 4;
  __device__ static float load_one(std::uint64_t at, std::int64_t i, int) { return pointer<const float>(at)[i]; }
};
struct skinny_any {
  static constexpr int chunk = 4;
  __device__ static float load_one(std::uint64_t at, std::int64_t i, int type) { return load(at, i, type); }
};

/// Elements `at` to `at` + chunk - 1, of which `valid` exist, of an operand that is aligned for one access if `whole`.
template <class T, int Count>
__device__ inline void load_chunk(std::uint64_t base, std::int64_t at, int type, bool whole, std::int64_t valid, float (&x)[Count]) {
  if constexpr (T::chunk == 8 && Count == 8) {
    if (whole && valid >= 8) return load_eight(base, at, bf16, x);
  } else if constexpr (std::is_same_v<T, skinny_f32>) {
    if (whole && valid >= 4) {
      const float4 u = *reinterpret_cast<const float4*>(pointer<const float>(base) + at);
      x[0] = u.x, x[1] = u.y, x[2] = u.z, x[3] = u.w;
      return;
    }
  }
#pragma unroll
  for (int q = 0; q < Count; ++q) x[q] = q < valid ? T::load_one(base, at + q, type) : 0.0f;
}

/// `a_cross`: lines of A run along M.
template <int Rows> __device__ inline void skinny_along_k(const gemm& g) {
  using T = skinny_any;
  constexpr int columns = 2, ahead = 2, chunk = T::chunk;
  const few_rows_place p(g);
  const bool a_cross = g.a_cross != 0;
  const int lane = int(threadIdx.x) % 32, n = (int(blockIdx.x) * (int(blockDim.x) / 32) + int(threadIdx.x) / 32) * columns;
  if (n >= g.columns) return;
  const bool a_whole = !a_cross && g.a.aligned != 0, b_whole = g.b.aligned != 0;
  float sums[Rows][columns];
#pragma unroll
  for (int m = 0; m < Rows; ++m)
#pragma unroll
    for (int j = 0; j < columns; ++j) sums[m][j] = 0.0f;
#pragma unroll 1
  for (int k0 = p.begin; k0 < p.end; k0 += 32 * chunk * ahead) {
    float right[ahead][columns][chunk];
#pragma unroll
    for (int d = 0; d < ahead; ++d) {
      const int k = k0 + chunk * (32 * d + lane);
#pragma unroll
      for (int j = 0; j < columns; ++j) {
        const std::int64_t column = n + j < g.columns ? n + j : g.columns - 1;
        load_chunk<T>(p.b, column * g.b.line + k, g.b.type, b_whole, p.end - k, right[d][j]);
      }
    }
#pragma unroll
    for (int d = 0; d < ahead; ++d) {
      const int k = k0 + chunk * (32 * d + lane);
#pragma unroll
      for (int m = 0; m < Rows; ++m) {
        const int row = m < g.rows ? m : g.rows - 1;  // sums of rows that do not exist are not used
        float left[chunk];
        if (a_cross) {
#pragma unroll
          for (int q = 0; q < chunk; ++q) left[q] = k + q < p.end ? T::load_one(p.a, (k + q) * g.a.line + row, g.a.type) : 0.0f;
        } else {
          load_chunk<T>(p.a, row * g.a.line + k, g.a.type, a_whole, p.end - k, left);
        }
#pragma unroll
        for (int j = 0; j < columns; ++j)
#pragma unroll
          for (int q = 0; q < chunk; ++q) sums[m][j] = fmaf(left[q], right[d][j][q], sums[m][j]);
      }
    }
  }
#pragma unroll
  for (int m = 0; m < Rows; ++m)
#pragma unroll
    for (int j = 0; j < columns; ++j) {
#pragma unroll
      for (int apart = 16; apart > 0; apart /= 2) sums[m][j] = plus(sums[m][j], __shfl_xor_sync(0xffffffffu, sums[m][j], apart));
    }
  // Lane i finishes sum i, and i + 32 where there are more.
#pragma unroll
  for (int first = 0; first < Rows * columns; first += 32) {
    float mine = 0.0f;
#pragma unroll
    for (int i = first; i < Rows * columns && i < first + 32; ++i)
      if (lane == i - first) mine = sums[i / columns][i % columns];
    const int i = first + lane, m = i / columns, column = n + i % columns;
    if (i < Rows * columns && m < g.rows && column < g.columns) finish_one(g, p.batch, p.part, m, column, mine);
  }
}

template <class T, int Rows> __device__ inline void skinny_along_n(const gemm& g) {
  constexpr int teams = 32, beside = 8, wide = T::chunk;  // wide: adjacent columns of a thread
  __shared__ float team_sums[teams][wide * beside];
  const few_rows_place p(g);
  const bool a_cross = g.a_cross != 0;
  const int team = int(threadIdx.x) / beside, place = int(threadIdx.x) % beside, n = (int(blockIdx.x) * beside + place) * wide;
  float sums[Rows][wide];
#pragma unroll
  for (int m = 0; m < Rows; ++m)
#pragma unroll
    for (int q = 0; q < wide; ++q) sums[m][q] = 0.0f;
#pragma unroll 4
  for (int k = p.begin + team; k < p.end; k += teams) {
    float right[wide];
    load_chunk<T>(p.b, k * g.b.line + n, g.b.type, g.b.aligned != 0, g.columns - n, right);
#pragma unroll
    for (int m = 0; m < Rows; ++m) {
      const int row = m < g.rows ? m : g.rows - 1;  // sums of rows that do not exist are not used
      const float left = T::load_one(p.a, a_cross ? k * g.a.line + row : row * g.a.line + k, g.a.type);
#pragma unroll
      for (int q = 0; q < wide; ++q) sums[m][q] = fmaf(left, right[q], sums[m][q]);
    }
  }
#pragma unroll
  for (int m = 0; m < Rows; ++m) {
    if (m >= g.rows) break;
    __syncthreads();
#pragma unroll
    for (int q = 0; q < wide; ++q) team_sums[team][wide * place + q] = sums[m][q];
    __syncthreads();
    const int column = int(blockIdx.x) * wide * beside + int(threadIdx.x);
    if (threadIdx.x < wide * beside && column < g.columns) {
      float total = team_sums[0][threadIdx.x];
      for (int t = 1; t < teams; ++t) total = plus(total, team_sums[t][threadIdx.x]);
      finish_one(g, p.batch, p.part, m, column, total);
    }
  }
}

extern "C" __global__ void __launch_bounds__(256) matmul_skinny_f32_n_1(const __grid_constant__ gemm g) {
  skinny_along_n<skinny_f32, 1>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_skinny_f32_n_2(const __grid_constant__ gemm g) {
  skinny_along_n<skinny_f32, 2>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_skinny_f32_n_4(const __grid_constant__ gemm g) {
  skinny_along_n<skinny_f32, 4>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_skinny_bf16_n_1(const __grid_constant__ gemm g) {
  skinny_along_n<skinny_bf16, 1>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_skinny_bf16_n_2(const __grid_constant__ gemm g) {
  skinny_along_n<skinny_bf16, 2>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_skinny_bf16_n_4(const __grid_constant__ gemm g) {
  skinny_along_n<skinny_bf16, 4>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_skinny_any_k_1(const __grid_constant__ gemm g) { skinny_along_k<1>(g); }
extern "C" __global__ void __launch_bounds__(256) matmul_skinny_any_k_2(const __grid_constant__ gemm g) { skinny_along_k<2>(g); }
extern "C" __global__ void __launch_bounds__(256) matmul_skinny_any_k_4(const __grid_constant__ gemm g) { skinny_along_k<4>(g); }
extern "C" __global__ void __launch_bounds__(256) matmul_skinny_any_n_1(const __grid_constant__ gemm g) {
  skinny_along_n<skinny_any, 1>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_skinny_any_n_2(const __grid_constant__ gemm g) {
  skinny_along_n<skinny_any, 2>(g);
}
extern "C" __global__ void __launch_bounds__(256) matmul_skinny_any_n_4(const __grid_constant__ gemm g) {
  skinny_along_n<skinny_any, 4>(g);
}

}  // namespace isotope::cuda::gpu
