#pragma once
// Halves of up to eight rows: the blocks of a cluster divide the columns of the rows, as in one_row.cuh, and pass on products with an eighth of the columns to the block
// that finishes them. The products of all rows take the instructions of one: rows are those of the first operand of mma.sync, the numbers of bf16 in the upper eight rows,
// what is left of them in the lower eight.
#include "decode/few.h"
#include "decode/row_sums.cuh"

namespace isotope::cuda::gpu {

/// What of the rows a block has: an eighth of their columns.
template <int C, int Lines> struct decode_few_lines {
  static constexpr int own = C / decode_ranks, pitch = 2 * own, warps = C / 64, tiles = Lines / 8 / warps;
  static_assert(pitch % 128 == 64, "rows one after the other start in different halves of the banks");
  static_assert(Lines / 8 % warps == 0);
  alignas(128) unsigned char weight[Lines * pitch];
  alignas(16) std::uint16_t gain[own], shift[own];
  alignas(16) unsigned char x[2][decode_most_rows * pitch];  // gain times the rows, rounded to bf16, and what is left of it
  float residual[decode_most_rows][own];
};

/// The operands of rows of this lane: `steps` chunks of each of two rows of a tile.
template <int Steps> struct decode_operand {
  uint4 high[Steps], low[Steps];
};
/// give(line, sums) for two lines of each tile of eight that the warp has: see mma_16x8x16_bf16.
template <int C, int Lines, class Give>
__device__ inline void multiply_few(const decode_few_lines<C, Lines>& s, const decode_operand<C / decode_ranks / 32>& x, const Give& give) {
  using memory = decode_few_lines<C, Lines>;
  constexpr int steps = memory::own / 32;
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
#pragma unroll
  for (int j = 0; j < memory::tiles; ++j) {
    const int tile = warp + j * memory::warps;
    const unsigned char* w = decode_chunk<memory::pitch>(s.weight + 8 * tile * memory::pitch);
    float sums[2][4] = {};
#pragma unroll
    for (int i = 0; i < steps; ++i) {
      const uint4 b = *reinterpret_cast<const uint4*>(w + 64 * i);
      const std::uint32_t first[4] = {x.high[i].x, x.low[i].x, x.high[i].y, x.low[i].y},
                          second[4] = {x.high[i].z, x.low[i].z, x.high[i].w, x.low[i].w};
      const std::uint32_t u[2] = {b.x, b.y}, v[2] = {b.z, b.w};
      mma_16x8x16_bf16(sums[0], first, u);
      mma_16x8x16_bf16(sums[1], second, v);
    }
    const float all[4] = {sums[0][0] + sums[1][0], sums[0][1] + sums[1][1], sums[0][2] + sums[1][2], sums[0][3] + sums[1][3]};
    give(tile, 8 * tile + 2 * (lane % 4), all);
  }
}
/// give(tile, line, sums): sums of weight times gain of two lines, then of weight times shift, in all lanes with the same lane % 4.
template <int C, int Lines, class Give> __device__ inline void constants_of_lines(const decode_few_lines<C, Lines>& s, const Give& give) {
  const int lane = int(threadIdx.x) % 32, row = lane / 4;
  decode_operand<C / decode_ranks / 32> x;
#pragma unroll
  for (int i = 0; i < C / decode_ranks / 32; ++i) {
    x.high[i] = row < 2 ? reinterpret_cast<const uint4*>(row == 0 ? s.gain : s.shift)[4 * i + lane % 4] : uint4{0, 0, 0, 0};
    x.low[i] = {0, 0, 0, 0};
  }
  multiply_few<C, Lines>(s, x, [&](int tile, int line, const float(&sums)[4]) {
    give(tile, line,
         float4{__shfl_sync(all_lanes, sums[0], lane % 4), __shfl_sync(all_lanes, sums[1], lane % 4),
                __shfl_sync(all_lanes, sums[0], 4 + lane % 4), __shfl_sync(all_lanes, sums[1], 4 + lane % 4)});
  });
}
/// The block's columns of the rows come to shared memory, times the gain. Ends with a barrier of the block.
template <int C, int Lines> __device__ inline void gather_few(const decode_rows& a, decode_few_lines<C, Lines>& s, int rank) {
  constexpr int own = C / decode_ranks;
  static_assert(decode_most_rows * own / 2 <= C / 2);
  const int t = int(threadIdx.x), row = t / (own / 2), column = t % (own / 2) * 2;
  if (row < a.N) {
    float x[2], y[2];
    sum_of_parts<C, 2>(a, row, rank * own + column, x);
    *reinterpret_cast<float2*>(&s.residual[row][column]) = float2{x[0], x[1]};
    const std::uint32_t g = *reinterpret_cast<const std::uint32_t*>(&s.gain[column]);
    y[0] = x[0] * low_value<bf16>(g), y[1] = x[1] * high_value<bf16>(g);
    const std::uint32_t bits = pair_bits<bf16>(y[0], y[1]);
    const int at = row * decode_few_lines<C, Lines>::pitch + 2 * column;
    *reinterpret_cast<std::uint32_t*>(s.x[0] + at) = bits;
    *reinterpret_cast<std::uint32_t*>(s.x[1] + at) = pair_bits<bf16>(y[0] - low_value<bf16>(bits), y[1] - high_value<bf16>(bits));
  }
  __syncthreads();
}
/// give(tile, line, two) for the products of row lane / 4 with lines `line` and the next one.
template <int C, int Lines, class Give> __device__ inline void multiply_gathered(const decode_few_lines<C, Lines>& s, const Give& give) {
  using memory = decode_few_lines<C, Lines>;
  constexpr int steps = memory::own / 32;
  decode_operand<steps> x;
#pragma unroll
  for (int i = 0; i < steps; ++i) {
    x.high[i] = *reinterpret_cast<const uint4*>(decode_chunk<memory::pitch>(s.x[0]) + 64 * i);
    x.low[i] = *reinterpret_cast<const uint4*>(decode_chunk<memory::pitch>(s.x[1]) + 64 * i);
  }
  multiply_few<C, Lines>(
      s, x, [&](int tile, int line, const float(&sums)[4]) { give(tile, line, float2{sums[0] + sums[2], sums[1] + sums[3]}); });
}
/// weight norm(x) of a line and a row: of(r) are the moments of block r, product(r) its products and constant(r) its sums of weight times gain and of weight times shift.
template <int C, class Moments, class Product, class Constant>
__device__ inline float product_of_blocks(float epsilon, const Moments& of, const Product& product, const Constant& constant) {
  constexpr int own = C / decode_ranks;
  float mean = 0.0f, square = 0.0f, between = 0.0f, sum = 0.0f;
  float2 without{0.0f, 0.0f}, m[decode_ranks];
#pragma unroll
  for (int r = 0; r < decode_ranks; ++r) {
    m[r] = of(r);
    mean += m[r].x, square += m[r].y, sum += product(r);
    const float2 c = constant(r);
    without.x += c.x, without.y += c.y;
  }
  mean *= 1.0f / decode_ranks;
#pragma unroll
  for (int r = 0; r < decode_ranks; ++r) between = fmaf(m[r].x - mean, m[r].x - mean, between);
  const float scale = rsqrtf(fmaf(between, float(own), square) * (1.0f / C) + epsilon);
  return fmaf(scale, sum - mean * without.x, without.y);
}
/// The part of the projection: columns 8 warp and on of this block's, of inputs that are rounded to bf16; part 0 has the residual and the bias. w(i): the thread's chunk of
/// the weights of step i, x(i): of the inputs.
template <int C, int Lines, int Steps, class Weight, class Input>
__device__ inline void project_few(const Weight& w, const Input& in, const decode_rows& a, const decode_few_lines<C, Lines>& s,
                                   const float2& bias, std::uint64_t to, int part, int rank) {
  constexpr int own = C / decode_ranks;
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, row = lane / 4, column = 8 * warp + 2 * (lane % 4);
  float sums[2][4] = {};
#pragma unroll
  for (int i = 0; i < Steps; ++i) {
    const uint4 x = in(i), y = w(i);
    const std::uint32_t first[4] = {x.x, 0, x.y, 0}, second[4] = {x.z, 0, x.w, 0}, u[2] = {y.x, y.y}, v[2] = {y.z, y.w};
    mma_16x8x16_bf16(sums[0], first, u);
    mma_16x8x16_bf16(sums[1], second, v);
  }
  if (row >= a.N) return;
  float2 y{sums[0][0] + sums[1][0], sums[0][1] + sums[1][1]};
  if (part == 0) {
    y.x += s.residual[row][column] + bias.x;
    y.y += s.residual[row][column + 1] + bias.y;
  }
  *reinterpret_cast<float2*>(pointer<float>(to) + (std::int64_t(part) * a.N + row) * C + rank * own + column) = y;
}

}  // namespace isotope::cuda::gpu
