// flags: -fmad=false
//
// A matmul of bf16 operands with at most 16 rows whose B has lines along K, as in decoding of several sequences: bound by the bytes of B,
// which are read once. The warps of a block share 8 or 16 columns, and each has a part of K. A thread reads chunks of 16 bytes of B and of
// A, and passes them to mma.sync as they are: the tile's order of K is free as long as both operands have the same, so the eight elements
// of a chunk count as the pairs that the thread holds in two products of 16 along K. Nothing but the sums goes through shared memory,
// which adds those of the warps in their order.
#include "device/early.cuh"
#include "device/mma.cuh"
#include "gemm/few_rows.cuh"
#include "rows/teams.cuh"

namespace isotope::cuda::gpu {

/// Halves: groups of eight rows of A; Groups: of eight columns of a block; Ahead: steps of 32 along K whose loads are in flight.
template <int Halves, int Groups, int Ahead> struct rows_mma {
  float sums[Groups][4];
  const std::uint16_t *left[Halves], *right[Groups];

  /// The products of Count steps from s on, all of whose loads are in flight together.
  template <int Count> __device__ void steps(int s) {
    uint4 x[Count][Halves], w[Count][Groups];
#pragma unroll
    for (int i = 0; i < Count; ++i) {
#pragma unroll
      for (int j = 0; j < Groups; ++j) w[i][j] = load_once(right[j] + std::int64_t(32) * (s + i));
#pragma unroll
      for (int h = 0; h < Halves; ++h) x[i][h] = *reinterpret_cast<const uint4*>(left[h] + std::int64_t(32) * (s + i));
    }
#pragma unroll
    for (int i = 0; i < Count; ++i) multiply(x[i], w[i]);
  }
  /// The same for the first `count` steps, whose chunks of B are there.
  template <int Count> __device__ void first_steps(int s, int count, const uint4 (&w)[Count][Groups]) {
    uint4 x[Count][Halves];
#pragma unroll
    for (int i = 0; i < Count; ++i)
#pragma unroll
      for (int h = 0; h < Halves; ++h)
        x[i][h] = i < count ? *reinterpret_cast<const uint4*>(left[h] + std::int64_t(32) * (s + i)) : uint4{0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < Count; ++i)
      if (i < count) multiply(x[i], w[i]);
  }
  /// The same for `count` steps, at most Count.
  template <int Count> __device__ void last_steps(int s, int count) {
    if constexpr (Count > 0) {
      if (count == Count) return steps<Count>(s);
      last_steps<Count - 1>(s, count);
    }
  }
  /// A step whose chunks are not aligned, or end behind K, in products of two elements for each thread; `valid`: elements from the thread's
  /// first one to the end.
  __device__ void step_of_some(int s, std::int64_t valid) {
#pragma unroll 1
    for (int i = 0; i < 4; ++i) {
      const std::int64_t at = std::int64_t(32) * s + 2 * i;
      const bool first = 2 * i < valid, second = 2 * i + 1 < valid;
      std::uint32_t x[4] = {}, w[2] = {};
#pragma unroll
      for (int h = 0; h < Halves; ++h) x[h] = pair(left[h] + at, first, second);
#pragma unroll
      for (int j = 0; j < Groups; ++j) {
        w[0] = pair(right[j] + at, first, second);
        mma_16x8x16_bf16(sums[j], x, w);
      }
    }
  }
  __device__ static std::uint32_t pair(const std::uint16_t* at, bool first, bool second) {
    return (first ? std::uint32_t(at[0]) : 0u) | (second ? std::uint32_t(at[1]) << 16 : 0u);
  }
  __device__ void multiply(const uint4 (&x)[Halves], const uint4 (&w)[Groups]) {
    const uint4 &low = x[0], &high = x[Halves - 1];
    const std::uint32_t first[4] = {low.x, Halves == 2 ? high.x : 0u, low.y, Halves == 2 ? high.y : 0u},
                        second[4] = {low.z, Halves == 2 ? high.z : 0u, low.w, Halves == 2 ? high.w : 0u};
#pragma unroll
    for (int j = 0; j < Groups; ++j) {
      const std::uint32_t a[2] = {w[j].x, w[j].y}, b[2] = {w[j].z, w[j].w};
      mma_16x8x16_bf16(sums[j], first, a);
      mma_16x8x16_bf16(sums[j], second, b);
    }
  }
};

/// Brings what finishing needs closer before the kernels that this one depends on have ended: the arguments to the multiprocessor, operands of row m and column n
/// that all rows share to the L2 cache.
__device__ inline void prefetch_operands(const gemm& g, int m, int n) {
  if (g.finish != finish_chain) return;
#pragma unroll
  for (int k = 0; k < chain_operands; ++k) {
    const chain_operand& o = g.operands[k];
    if (o.at != 0 && o.row == 0 && m == 0 && n < g.columns)
      prefetch_line(pointer<const unsigned char>(o.at) + std::int64_t(o.column != 0 ? n : 0) * (o.type == f32 ? 4 : 2));
  }
#if !defined(ISOTOPE_EMULATED_DEVICE)
  asm volatile("" ::"f"(g.alpha), "f"(g.chain[0].constant), "f"(g.chain[2].constant), "l"(g.out[0]), "r"(g.out_type[0]), "r"(g.steps));
#endif
}

template <int Halves, int Groups, int Ahead, int Warps> __device__ inline void multiply_few_rows(const gemm& g) {
  constexpr int columns = 8 * Groups, rows = 8 * Halves, threads = 32 * Warps;
  __shared__ float warp_sums[Warps][Groups][rows][8];
  start_dependents();
  const few_rows_place p(g);
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, group = lane / 4, quad = lane % 4, n0 = int(blockIdx.x) * columns;

  rows_mma<Halves, Groups, Ahead> my;
#pragma unroll
  for (int j = 0; j < Groups; ++j) {  // sums of rows and columns that do not exist are not used
    const std::int64_t n = n0 + 8 * j + group < g.columns ? n0 + 8 * j + group : g.columns - 1;
    my.right[j] = pointer<const std::uint16_t>(p.b) + n * g.b.line + p.begin + 8 * quad;
#pragma unroll
    for (int q = 0; q < 4; ++q) my.sums[j][q] = 0.0f;
  }
#pragma unroll
  for (int h = 0; h < Halves; ++h) {
    const std::int64_t m = 8 * h + group < g.rows ? 8 * h + group : g.rows - 1;
    my.left[h] = pointer<const std::uint16_t>(p.a) + m * g.a.line + p.begin + 8 * quad;
  }
  const int depth = p.end - p.begin, all = (depth + 31) / 32, whole = g.a.aligned != 0 && g.b.aligned != 0 ? depth / 32 : 0;
  const int begin = int(std::int64_t(all) * warp / Warps), end = int(std::int64_t(all) * (warp + 1) / Warps);
  const int stop = end < whole ? end : whole;
  int s = begin;
  constexpr int most_early = Halves == 1 && Groups == 2 ? 2 : Ahead;  // more would not fit into the registers of three blocks
  const int early = stop - s < most_early ? (stop - s < 0 ? 0 : stop - s) : most_early;
  uint4 ahead[most_early][Groups];
#pragma unroll
  for (int i = 0; i < most_early; ++i)
#pragma unroll
    for (int j = 0; j < Groups; ++j) ahead[i][j] = i < early ? load_once(my.right[j] + std::int64_t(32) * (s + i)) : uint4{0, 0, 0, 0};
  prefetch_operands(g, int(threadIdx.x) / columns, n0 + int(threadIdx.x) % columns);
  wait_for_dependencies();
  const few_rows_operands first(g, p.batch, int(threadIdx.x) / columns, n0 + int(threadIdx.x) % columns);
  my.first_steps(s, early, ahead);
  s += early;
#pragma unroll 1
  for (; s + Ahead <= stop; s += Ahead) my.template steps<Ahead>(s);
  if (s < stop) {
    my.template last_steps<Ahead - 1>(s, stop - s);
    s = stop;
  }
#pragma unroll 1
  for (; s < end; ++s) my.step_of_some(s, depth - 32 * std::int64_t(s) - 8 * quad);

#pragma unroll
  for (int j = 0; j < Groups; ++j)
#pragma unroll
    for (int h = 0; h < Halves; ++h)
      *reinterpret_cast<float2*>(&warp_sums[warp][j][8 * h + group][2 * quad]) = float2{my.sums[j][2 * h], my.sums[j][2 * h + 1]};
  __syncthreads();
#pragma unroll 1
  for (int e = int(threadIdx.x); e < rows * columns; e += threads) {
    const int m = e / columns, c = e % columns;
    if (m >= g.rows || n0 + c >= g.columns) continue;
    float total = warp_sums[0][c / 8][m][c % 8];
#pragma unroll
    for (int w = 1; w < Warps; ++w) total = plus(total, warp_sums[w][c / 8][m][c % 8]);
    finish_few(g, p, m, n0 + c, total, e == int(threadIdx.x) ? first : few_rows_operands(g, p.batch, m, n0 + c));
  }
}

/// The rows of A normalised, in dynamic shared memory, `line` elements apart: a warp takes a row, and computes what norm_up_to_1024_bf16 does, with the same bits.
/// Weight and bias are on their way to the L2 cache before the kernels that this one depends on have ended.
struct normalised_rows {
  static constexpr int hold = 4, run = vector_elems<bf16>;
  std::uint16_t* rows = nullptr;
  int lane, warp, line, depth;

  __device__ normalised_rows(const gemm& g)
      : lane(int(threadIdx.x) % 32), warp(int(threadIdx.x) / 32), line(g.depth + run), depth(g.depth) {
    if (g.norm.on == 0) return;
    rows = reinterpret_cast<std::uint16_t*>(dynamic_shared());
    const int first = int(threadIdx.x) * run;
    if (first >= depth) return;
    prefetch_line(pointer<const std::uint16_t>(g.norm.weight) + first);
    if (g.norm.centered != 0) prefetch_line(pointer<const std::uint16_t>(g.norm.bias) + first);
  }
  __device__ int column(int k) const { return (k * 32 + lane) * run; }
  /// Computes the rows. All threads of the block call it.
  __device__ void compute(const gemm& g, std::uint64_t x_at) {
    const float C = float(depth);
    for (int row = warp; row < g.rows; row += int(blockDim.x) / 32) {
      uint4 x[hold], weight[hold], bias[hold];
      float mean = 0.0f, squares = 0.0f;
#pragma unroll
      for (int k = 0; k < hold; ++k) {
        x[k] = weight[k] = bias[k] = make_uint4(0, 0, 0, 0);
        if (column(k) >= depth) continue;
        x[k] = *reinterpret_cast<const uint4*>(pointer<const std::uint16_t>(x_at) + row * g.a.line + column(k));
        weight[k] = *reinterpret_cast<const uint4*>(pointer<const std::uint16_t>(g.norm.weight) + column(k));
        if (g.norm.centered != 0) bias[k] = *reinterpret_cast<const uint4*>(pointer<const std::uint16_t>(g.norm.bias) + column(k));
      }
      if (g.norm.centered != 0) {
#pragma unroll
        for (int k = 0; k < hold; ++k) {
          float v[run];
          unpack<bf16>(x[k], v);
#pragma unroll
          for (int j = 0; j < run; ++j) mean += v[j];
        }
        mean = over_warp(mean, sum_of_two{}) / C;
      }
#pragma unroll
      for (int k = 0; k < hold; ++k) {
        if (column(k) >= depth) continue;
        float v[run];
        unpack<bf16>(x[k], v);
#pragma unroll
        for (int j = 0; j < run; ++j) squares = fmaf(v[j] - mean, v[j] - mean, squares);
      }
      const float rstd = 1.0f / sqrtf(over_warp(squares, sum_of_two{}) / C + g.norm.epsilon);
#pragma unroll
      for (int k = 0; k < hold; ++k) {
        if (column(k) >= depth) continue;
        float v[run], w[run], b[run];
        unpack<bf16>(x[k], v);
        unpack<bf16>(weight[k], w);
        unpack<bf16>(bias[k], b);
#pragma unroll
        for (int j = 0; j < run; ++j) v[j] = fmaf((v[j] - mean) * rstd, w[j], b[j]);
        *reinterpret_cast<uint4*>(rows + row * line + column(k)) = packed<bf16>(v);
      }
    }
    __syncthreads();
  }
};

/// The same for K of at most 32 Steps Warps, whole steps and aligned lines: a thread keeps its elements of A, and a block walks over groups
/// of 16 columns, so that the loads of the next group are in flight while sums are finished.
template <int Halves, int Steps, int Warps> __device__ inline void multiply_short_rows(const gemm& g) {
  constexpr int groups = 2, columns = 8 * groups, rows = 8 * Halves;
  __shared__ float warp_sums[2][Warps][groups][rows][8];
  start_dependents();
  const few_rows_place p(g);
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, group = lane / 4, quad = lane % 4;
  const int all = (p.end - p.begin) / 32, begin = all * warp / Warps, count = all * (warp + 1) / Warps - begin;
  const int tiles = (g.columns + columns - 1) / columns;
  const std::int64_t offset = p.begin + 32 * std::int64_t(begin) + 8 * quad;

  uint4 x[Steps][Halves], w[Steps][groups];
  const auto load_right = [&](int tile) {
#pragma unroll
    for (int j = 0; j < groups; ++j) {  // sums of rows and columns that do not exist are not used
      const int n = columns * tile + 8 * j + group;
      const std::uint16_t* from = pointer<const std::uint16_t>(p.b) + std::int64_t(n < g.columns ? n : g.columns - 1) * g.b.line + offset;
#pragma unroll
      for (int i = 0; i < Steps; ++i)
        if (i < count) w[i][j] = load_once(from + 32 * i);
    }
  };
  load_right(int(blockIdx.x));
  normalised_rows norm(g);
  const int m_of = int(threadIdx.x) / columns, n_of = int(threadIdx.x) % columns;
  prefetch_operands(g, m_of, columns * int(blockIdx.x) + n_of);
  wait_for_dependencies();
  constexpr bool held = Halves * Steps < 8;  // else registers do not suffice
  few_rows_operands first(g, p.batch, held ? m_of : g.rows, columns * int(blockIdx.x) + n_of);
  if (g.norm.on != 0) norm.compute(g, p.a);
#pragma unroll
  for (int h = 0; h < Halves; ++h) {
    const std::int64_t m = 8 * h + group < g.rows ? 8 * h + group : g.rows - 1;
    const std::uint16_t* from = (g.norm.on != 0 ? norm.rows + m * norm.line : pointer<const std::uint16_t>(p.a) + m * g.a.line) + offset;
#pragma unroll
    for (int i = 0; i < Steps; ++i)
      if (i < count) x[i][h] = *reinterpret_cast<const uint4*>(from + 32 * i);
  }
  int buffer = 0;
#pragma unroll 1
  for (int tile = int(blockIdx.x); tile < tiles; tile += int(gridDim.x), buffer ^= 1) {
    rows_mma<Halves, groups, Steps> my;
#pragma unroll
    for (int j = 0; j < groups; ++j)
#pragma unroll
      for (int q = 0; q < 4; ++q) my.sums[j][q] = 0.0f;
#pragma unroll
    for (int i = 0; i < Steps; ++i)
      if (i < count) my.multiply(x[i], w[i]);
    if (held && tile != int(blockIdx.x)) first = few_rows_operands(g, p.batch, m_of, columns * tile + n_of);
    if (tile + int(gridDim.x) < tiles) load_right(tile + int(gridDim.x));
#pragma unroll
    for (int j = 0; j < groups; ++j)
#pragma unroll
      for (int h = 0; h < Halves; ++h)
        *reinterpret_cast<float2*>(&warp_sums[buffer][warp][j][8 * h + group][2 * quad]) = float2{my.sums[j][2 * h], my.sums[j][2 * h + 1]};
    __syncthreads();  // with two buffers, sums that are still read are not overwritten
#pragma unroll 1
    for (int e = int(threadIdx.x); e < rows * columns; e += 32 * Warps) {
      const int m = e / columns, c = e % columns, n = columns * tile + c;
      if (m >= g.rows || n >= g.columns) continue;
      float total = warp_sums[buffer][0][c / 8][m][c % 8];
#pragma unroll
      for (int i = 1; i < Warps; ++i) total = plus(total, warp_sums[buffer][i][c / 8][m][c % 8]);
      finish_few(g, p, m, n, total, held && e == int(threadIdx.x) ? first : few_rows_operands(g, p.batch, m, n));
    }
  }
}

// The first number is that of the columns of a block, the second one that of the rows.
extern "C" __global__ void __launch_bounds__(256, 4) matmul_rows_mma_8_8(const __grid_constant__ gemm g) {
  multiply_few_rows<1, 1, 4, 8>(g);
}
extern "C" __global__ void __launch_bounds__(256, 2) matmul_rows_mma_8_16(const __grid_constant__ gemm g) {
  multiply_few_rows<2, 1, 4, 8>(g);
}
extern "C" __global__ void __launch_bounds__(512, 2) matmul_rows_mma_8_8_deep(const __grid_constant__ gemm g) {
  multiply_few_rows<1, 1, 6, 16>(g);
}
extern "C" __global__ void __launch_bounds__(512, 1) matmul_rows_mma_8_16_deep(const __grid_constant__ gemm g) {
  multiply_few_rows<2, 1, 6, 16>(g);
}
extern "C" __global__ void __launch_bounds__(256, 3) matmul_rows_mma_16_8(const __grid_constant__ gemm g) {
  multiply_few_rows<1, 2, 4, 8>(g);
}
extern "C" __global__ void __launch_bounds__(256, 2) matmul_rows_mma_16_16(const __grid_constant__ gemm g) {
  multiply_few_rows<2, 2, 4, 8>(g);
}
extern "C" __global__ void __launch_bounds__(256, 2) matmul_rows_mma_short_8(const __grid_constant__ gemm g) {
  multiply_short_rows<1, 3, 8>(g);
}
extern "C" __global__ void __launch_bounds__(256, 2) matmul_rows_mma_short_16(const __grid_constant__ gemm g) {
  multiply_short_rows<2, 3, 8>(g);
}
extern "C" __global__ void __launch_bounds__(256, 2) matmul_rows_mma_long_8(const __grid_constant__ gemm g) {
  multiply_short_rows<1, 4, 8>(g);
}
extern "C" __global__ void __launch_bounds__(256, 1) matmul_rows_mma_long_16(const __grid_constant__ gemm g) {
  multiply_short_rows<2, 4, 8>(g);
}

}  // namespace isotope::cuda::gpu
