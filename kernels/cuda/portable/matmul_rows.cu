// flags: -fmad=false
//
// A matmul with at most 16 rows whose operands have lines along K, as in decoding: bound by the bytes of B, which are read once. A warp has
// four columns and all rows: its lanes read adjacent chunks of 16 bytes of B's lines, multiply each with the chunks of all rows, which come
// from L1, and exchange sums so that each lane finishes some. `g.teams` warps share their columns, and each has a part of K; shared memory
// adds their sums in the order of K. The order of additions depends on the shape and the number of blocks that fill the device.
#include "device/early.cuh"
#include "gemm/few_rows.cuh"

namespace isotope::cuda::gpu {

/// Four elements as they lie in memory, of f32 or bf16.
__device__ inline void decode(const uint4& u, float (&x)[4]) {
  x[0] = __uint_as_float(u.x), x[1] = __uint_as_float(u.y), x[2] = __uint_as_float(u.z), x[3] = __uint_as_float(u.w);
}
__device__ inline void decode(const uint2& u, float (&x)[4]) {
  x[0] = __uint_as_float(u.x << 16), x[1] = __uint_as_float(u.x & 0xffff0000u);
  x[2] = __uint_as_float(u.y << 16), x[3] = __uint_as_float(u.y & 0xffff0000u);
}
/// Elements 4 i to 4 i + 3 of a chunk of f32 or bf16.
__device__ inline void decode_four(const float*, const uint4& u, int, float (&x)[4]) { decode(u, x); }
__device__ inline void decode_four(const std::uint16_t*, const uint4& u, int i, float (&x)[4]) {
  decode(i == 0 ? uint2{u.x, u.y} : uint2{u.z, u.w}, x);
}
struct f16_element {
  std::uint16_t bits;
};
__device__ inline void decode_four(const f16_element*, const uint4& u, int i, float (&x)[4]) {
  const std::uint32_t low = i == 0 ? u.x : u.z, high = i == 0 ? u.y : u.w;
  x[0] = f16_value(std::uint16_t(low)), x[1] = f16_value(std::uint16_t(low >> 16));
  x[2] = f16_value(std::uint16_t(high)), x[3] = f16_value(std::uint16_t(high >> 16));
}
__device__ inline void load_four(const float* at, float (&x)[4]) { decode(*reinterpret_cast<const uint4*>(at), x); }
__device__ inline void load_four(const std::uint16_t* at, float (&x)[4]) { decode(*reinterpret_cast<const uint2*>(at), x); }
__device__ inline float load_element(const float* at) { return *at; }
__device__ inline float load_element(const std::uint16_t* at) { return bf16_value(*at); }
__device__ inline float load_element(const f16_element* at) { return f16_value(at->bits); }

/// The formats of A and B. A chunk of B has 16 bytes.
struct rows_f32 {
  using left = float;
  using right = float;
};
struct rows_bf16 {
  using left = std::uint16_t;
  using right = std::uint16_t;
};
struct rows_f32_bf16 {
  using left = float;
  using right = std::uint16_t;
};
struct rows_f32_f16 {
  using left = float;
  using right = f16_element;
};

/// Adds the values of all lanes, of which each keeps Count / 32, or one if there are fewer: those from (Count lane / 32) on.
template <int Count, int Apart, int All> __device__ inline void exchange_sums(float (&v)[All], int lane) {
  constexpr int half = Count / 2;
  if constexpr (Count > 1) {
    const bool upper = (lane & Apart) != 0;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const float other = __shfl_xor_sync(0xffffffffu, upper ? v[i] : v[i + half], Apart);
      v[i] = plus(upper ? v[i + half] : v[i], other);
    }
  } else {
    v[0] = plus(v[0], __shfl_xor_sync(0xffffffffu, v[0], Apart));
  }
  if constexpr (Apart > 1) exchange_sums<(Count > 1 ? half : 1), Apart / 2>(v, lane);
}

/// Ahead: steps of 32 chunks along K whose loads are in flight together.
template <class T, int Rows, int Ahead> __device__ inline void multiply_rows(const gemm& g) {
  using left_elem = typename T::left;
  using right_elem = typename T::right;
  constexpr int chunk = 16 / int(sizeof(right_elem)), step = 32 * chunk, columns = 4, count = Rows * columns, warps = 8;
  __shared__ float warp_sums[warps][count];
  start_dependents();
  const few_rows_place p(g);
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, team = warp % g.teams, across = columns * (warps / g.teams);
  const int n0 = int(blockIdx.x) * across, n = n0 + columns * (warp / g.teams);
  const left_elem* left = pointer<const left_elem>(p.a) + p.begin + chunk * lane;
  const right_elem* right[columns];
#pragma unroll
  for (int j = 0; j < columns; ++j) {  // sums of rows and columns that do not exist are not used
    const std::int64_t column = n + j < g.columns ? n + j : g.columns - 1;
    right[j] = pointer<const right_elem>(p.b) + column * g.b.line + p.begin + chunk * lane;
  }
  float sums[count];
#pragma unroll
  for (int i = 0; i < count; ++i) sums[i] = 0.0f;
  const auto multiply = [&](int s, const uint4(&raw)[columns]) {
#pragma unroll 1
    for (int i = 0; i < chunk / 4; ++i) {
      float w[columns][4];
#pragma unroll
      for (int j = 0; j < columns; ++j) decode_four(right[j], raw[j], i, w[j]);
      const left_elem* row = left + std::int64_t(step) * s + 4 * i;
      const std::int64_t line = recomputed(g.a.line);  // one pointer takes fewer registers than one for each row
#pragma unroll
      for (int m = 0; m < Rows; ++m) {
        float x[4];
        load_four(row, x);
        if (m + 1 < g.rows) row += line;
#pragma unroll
        for (int j = 0; j < columns; ++j)
#pragma unroll
          for (int q = 0; q < 4; ++q) sums[m * columns + j] = fmaf(x[q], w[j][q], sums[m * columns + j]);
      }
    }
  };

  const int depth = p.end - p.begin, all = (depth + step - 1) / step, whole = g.a.aligned != 0 && g.b.aligned != 0 ? depth / step : 0;
  const int begin = int(std::int64_t(all) * team / g.teams), end = int(std::int64_t(all) * (team + 1) / g.teams);
  const int stop = end < whole ? end : whole;
  constexpr int most_early = 8, sharers = 8;  // steps that are read before others have ended; lanes that share a line of the cache
#pragma unroll 1
  for (int s = begin; s < stop && s < begin + most_early; ++s)
#pragma unroll
    for (int j = 0; j < columns; ++j)
      if (lane % sharers == 0) prefetch_line(right[j] + std::int64_t(step) * s);
  wait_for_dependencies();
  const few_rows_operands first(g, p.batch, int(threadIdx.x) / across, n0 + int(threadIdx.x) % across);
#pragma unroll 1
  for (int s = begin; s < stop; s += Ahead) {
    uint4 w[Ahead][columns];
#pragma unroll
    for (int i = 0; i < Ahead; ++i)
#pragma unroll
      for (int j = 0; j < columns; ++j)
        if (s + i < stop) w[i][j] = load_once(right[j] + std::int64_t(step) * (s + i));
#pragma unroll
    for (int i = 0; i < Ahead; ++i)
      if (s + i < stop) multiply(s + i, w[i]);
  }
#pragma unroll 1
  for (int s = begin < stop ? stop : begin; s < end; ++s) {  // chunks that are not aligned, or end behind K
    const std::int64_t at = std::int64_t(step) * s, left_over = depth - at - chunk * lane, valid = left_over < chunk ? left_over : chunk;
#pragma unroll 1
    for (std::int64_t q = at; q < at + valid; ++q) {
      float w[columns];
#pragma unroll
      for (int j = 0; j < columns; ++j) w[j] = load_element(right[j] + q);
      const left_elem* row = left + q;
      const std::int64_t line = recomputed(g.a.line);
#pragma unroll
      for (int m = 0; m < Rows; ++m) {
        const float x = load_element(row);
        if (m + 1 < g.rows) row += line;
#pragma unroll
        for (int j = 0; j < columns; ++j) sums[m * columns + j] = fmaf(x, w[j], sums[m * columns + j]);
      }
    }
  }

  exchange_sums<count, 16>(sums, lane);
  constexpr int kept = count < 32 ? 1 : count / 32, holders = count < 32 ? 32 / count : 1;
  if (lane % holders == 0) {
#pragma unroll
    for (int i = 0; i < kept; ++i) warp_sums[warp][lane / holders * kept + i] = sums[i];
  }
  __syncthreads();
#pragma unroll 1
  for (int e = int(threadIdx.x); e < Rows * across; e += 32 * warps) {
    const int m = e / across, c = e % across;
    if (m >= g.rows || n0 + c >= g.columns) continue;
    const float* from = &warp_sums[c / columns * g.teams][m * columns + c % columns];
    float total = from[0];
    for (int t = 1; t < g.teams; ++t) total = plus(total, from[t * count]);
    finish_few(g, p, m, n0 + c, total, e == int(threadIdx.x) ? first : few_rows_operands(g, p.batch, m, n0 + c));
  }
}

extern "C" __global__ void __launch_bounds__(256, 3) matmul_rows_f32_1(const __grid_constant__ gemm g) { multiply_rows<rows_f32, 1, 2>(g); }
extern "C" __global__ void __launch_bounds__(256, 4) matmul_rows_f32_2(const __grid_constant__ gemm g) { multiply_rows<rows_f32, 2, 2>(g); }
extern "C" __global__ void __launch_bounds__(256, 2) matmul_rows_f32_4(const __grid_constant__ gemm g) { multiply_rows<rows_f32, 4, 2>(g); }
extern "C" __global__ void __launch_bounds__(256, 2) matmul_rows_f32_8(const __grid_constant__ gemm g) { multiply_rows<rows_f32, 8, 2>(g); }
extern "C" __global__ void __launch_bounds__(256, 2) matmul_rows_f32_16(const __grid_constant__ gemm g) {
  multiply_rows<rows_f32, 16, 1>(g);
}
extern "C" __global__ void __launch_bounds__(256, 4) matmul_rows_bf16_1(const __grid_constant__ gemm g) {
  multiply_rows<rows_bf16, 1, 2>(g);
}
extern "C" __global__ void __launch_bounds__(256, 3) matmul_rows_bf16_2(const __grid_constant__ gemm g) {
  multiply_rows<rows_bf16, 2, 2>(g);
}
extern "C" __global__ void __launch_bounds__(256, 2) matmul_rows_bf16_4(const __grid_constant__ gemm g) {
  multiply_rows<rows_bf16, 4, 2>(g);
}
extern "C" __global__ void __launch_bounds__(256, 2) matmul_rows_bf16_8(const __grid_constant__ gemm g) {
  multiply_rows<rows_bf16, 8, 1>(g);
}
extern "C" __global__ void __launch_bounds__(256, 2) matmul_rows_bf16_16(const __grid_constant__ gemm g) {
  multiply_rows<rows_bf16, 16, 1>(g);
}
extern "C" __global__ void __launch_bounds__(256, 3) matmul_rows_f32_bf16_1(const __grid_constant__ gemm g) {
  multiply_rows<rows_f32_bf16, 1, 2>(g);
}
extern "C" __global__ void __launch_bounds__(256, 3) matmul_rows_f32_bf16_2(const __grid_constant__ gemm g) {
  multiply_rows<rows_f32_bf16, 2, 2>(g);
}
extern "C" __global__ void __launch_bounds__(256, 2) matmul_rows_f32_bf16_4(const __grid_constant__ gemm g) {
  multiply_rows<rows_f32_bf16, 4, 2>(g);
}
extern "C" __global__ void __launch_bounds__(256, 2) matmul_rows_f32_bf16_8(const __grid_constant__ gemm g) {
  multiply_rows<rows_f32_bf16, 8, 1>(g);
}
extern "C" __global__ void __launch_bounds__(256, 2) matmul_rows_f32_bf16_16(const __grid_constant__ gemm g) {
  multiply_rows<rows_f32_bf16, 16, 1>(g);
}

extern "C" __global__ void __launch_bounds__(256, 3) matmul_rows_f32_f16_1(const __grid_constant__ gemm g) {
  multiply_rows<rows_f32_f16, 1, 2>(g);
}
extern "C" __global__ void __launch_bounds__(256, 3) matmul_rows_f32_f16_2(const __grid_constant__ gemm g) {
  multiply_rows<rows_f32_f16, 2, 2>(g);
}
extern "C" __global__ void __launch_bounds__(256, 2) matmul_rows_f32_f16_4(const __grid_constant__ gemm g) {
  multiply_rows<rows_f32_f16, 4, 2>(g);
}
extern "C" __global__ void __launch_bounds__(256, 2) matmul_rows_f32_f16_8(const __grid_constant__ gemm g) {
  multiply_rows<rows_f32_f16, 8, 1>(g);
}
extern "C" __global__ void __launch_bounds__(256, 2) matmul_rows_f32_f16_16(const __grid_constant__ gemm g) {
  multiply_rows<rows_f32_f16, 16, 1>(g);
}

}  // namespace isotope::cuda::gpu
