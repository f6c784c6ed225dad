#pragma once
// The first product of a half, of a single row: y = weight norm(x) + bias, whose lines the blocks of a cluster have together. A block adds up an eighth of the columns of x and
// multiplies it with the same columns of all lines, so that the blocks meet once, to add up products:
//   y = r (sum of weight g x - mean sum of weight g) + sum of weight b + bias,   r = 1 / standard deviation, g and b: weight and bias of the norm.
// The sums without x are known before the launch before has ended. g x is the sum of two numbers of bf16, in rows 0 and 8 of mma.sync, so no digits are lost to a large mean.
#include "decode/row_sums.cuh"

namespace isotope::cuda::gpu {

template <int C, int Lines> struct decode_line_memory {
  static constexpr int own = C / decode_ranks, pitch = 2 * own, warps = C / 64;
  static_assert(pitch % 128 == 64, "rows of weights one after the other start in different halves of the banks");
  unsigned char weight[Lines * pitch];
  uint4 gain[own / 8], shift[own / 8];
  uint4 x[2][own / 8];  // g x, rounded to bf16, and what is left of it
  float residual[own];
  float4 constants[decode_ranks][Lines / 2];  // over the columns of each block, of two lines: sums of weight g, then of weight b
  float products[decode_ranks][Lines];
  float2 moments[decode_ranks];  // of the columns of each block: mean, and sum of squared differences from it
  std::uint64_t prepared, arrived;
};

/// Starts the barriers; by one thread.
template <int C, int Lines> __device__ inline void begin_lines(decode_line_memory<C, Lines>& s) {
  barrier_init(shared_address(&s.prepared), 1);
  barrier_init(shared_address(&s.arrived), 1);
  barrier_init_fence();
  barrier_expect(shared_address(&s.prepared), decode_ranks * 2 * Lines * 4);
  barrier_expect(shared_address(&s.arrived), decode_ranks * (Lines * 4 + 8));
}
/// Starts copying weights; line(i): row i of them.
template <int C, int Lines, class Line>
__device__ inline void load_lines(const decode_rows& a, decode_line_memory<C, Lines>& s, int rank, const Line& line) {
  using memory = decode_line_memory<C, Lines>;
  constexpr int own = memory::own;
  load_weights<Lines, own / 8, memory::pitch>(s.weight, [&](int i) { return line(i) + rank * own; });
  if (const int t = int(threadIdx.x); t < own / 4) {
    const std::uint64_t from = t < own / 8 ? a.norm_weight : a.norm_bias;
    copy_async_16((t < own / 8 ? s.gain : s.shift) + t % (own / 8), pointer<const std::uint16_t>(from) + rank * own + t % (own / 8) * 8);
  }
}
/// Products of the rows of a tile's first operand with eight lines each: give(line, sums) has those of lines `line` and the next one.
template <int C, int Lines, class Give>
__device__ inline void multiply_lines(const decode_line_memory<C, Lines>& s, const uint4* low, const uint4* high, bool has_low,
                                      bool has_high, const Give& give) {
  using memory = decode_line_memory<C, Lines>;
  constexpr int steps = memory::own / 32;
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, quad = lane % 4;
  uint4 x[steps], y[steps];
#pragma unroll
  for (int i = 0; i < steps; ++i) {
    x[i] = has_low ? low[4 * i + quad] : uint4{0, 0, 0, 0};
    y[i] = has_high ? high[4 * i + quad] : uint4{0, 0, 0, 0};
  }
#pragma unroll
  for (int j = 0; j < (Lines / 8 + memory::warps - 1) / memory::warps; ++j) {
    const int tile = warp + j * memory::warps;
    if (Lines / 8 % memory::warps != 0 && tile >= Lines / 8) break;
    const unsigned char* w = decode_chunk<memory::pitch>(s.weight + 8 * tile * memory::pitch);
    float sums[2][4] = {};
#pragma unroll
    for (int i = 0; i < steps; ++i) {
      const uint4 b = *reinterpret_cast<const uint4*>(w + 64 * i);
      const std::uint32_t first[4] = {x[i].x, y[i].x, x[i].y, y[i].y}, second[4] = {x[i].z, y[i].z, x[i].w, y[i].w};
      const std::uint32_t u[2] = {b.x, b.y}, v[2] = {b.z, b.w};
      mma_16x8x16_bf16(sums[0], first, u);
      mma_16x8x16_bf16(sums[1], second, v);
    }
    const float all[4] = {sums[0][0] + sums[1][0], sums[0][1] + sums[1][1], sums[0][2] + sums[1][2], sums[0][3] + sums[1][3]};
    give(8 * tile + 2 * quad, all);
  }
}
/// Sends the sums without x, of weight g and of weight b. The weights are in shared memory.
template <int C, int Lines> __device__ inline void prepare_lines(decode_line_memory<C, Lines>& s, int rank) {
  const int lane = int(threadIdx.x) % 32, row = lane / 4;
  multiply_lines<C, Lines>(s, row == 0 ? s.gain : s.shift, s.shift, row < 2, false, [&](int line, const float(&sums)[4]) {
    // Rows 0 and 1 have the sums, in four threads each; each eight threads of the warp send them to a block.
    const float4 both{__shfl_sync(all_lanes, sums[0], lane % 4), __shfl_sync(all_lanes, sums[1], lane % 4),
                      __shfl_sync(all_lanes, sums[0], 4 + lane % 4), __shfl_sync(all_lanes, sums[1], 4 + lane % 4)};
    send(&s.constants[rank][line / 2].x, shared_address(&s.prepared), std::uint32_t(lane / 4), both);
  });
}
/// y of line threadIdx.x without its bias.
template <int C, int Lines> __device__ inline float product_of_line(const decode_rows& a, decode_line_memory<C, Lines>& s, int rank) {
  constexpr int own = C / decode_ranks;
  const int t = int(threadIdx.x), lane = t % 32, warp = t / 32;
  if (t < own) {
    float x[1];
    sum_of_parts<C, 1>(a, 0, rank * own + t, x);
    s.residual[t] = x[0];
    const float y = x[0] * bf16_value(reinterpret_cast<const std::uint16_t*>(s.gain)[t]);
    const std::uint16_t bits = bf16_bits(y);
    reinterpret_cast<std::uint16_t*>(s.x[0])[t] = bits;
    reinterpret_cast<std::uint16_t*>(s.x[1])[t] = bf16_bits(y - bf16_value(bits));
  }
  __syncthreads();
  multiply_lines<C, Lines>(s, s.x[0], s.x[1], lane < 4, lane < 4, [&](int line, const float(&sums)[4]) {
    // The four threads of row 0 have the sums; eight of each send them, to a block each.
    const float first = __shfl_sync(all_lanes, sums[0] + sums[2], lane % 4), second = __shfl_sync(all_lanes, sums[1] + sums[3], lane % 4);
    send(&s.products[rank][line], shared_address(&s.arrived), std::uint32_t(lane / 4), first, second);
  });
  if (warp == C / 64 - 1) {
    const float2 m = moments_of_columns(s.residual);
    if (lane < decode_ranks) send(&s.moments[rank].x, shared_address(&s.arrived), std::uint32_t(lane), m.x, m.y);
  }
  wait_for_sent(shared_address(&s.prepared), 0);
  float2 constant{0.0f, 0.0f};
  if (t < Lines) {
#pragma unroll
    for (int r = 0; r < decode_ranks; ++r) {
      const float* two = &s.constants[r][t / 2].x + t % 2;
      constant.x += two[0], constant.y += two[2];
    }
  }
  wait_for_sent(shared_address(&s.arrived), 0);
  if (t >= Lines) return 0.0f;
  float mean = 0.0f, square = 0.0f, between = 0.0f, product = 0.0f;
#pragma unroll
  for (int r = 0; r < decode_ranks; ++r) {
    mean += s.moments[r].x;
    square += s.moments[r].y;
    product += s.products[r][t];
  }
  mean *= 1.0f / decode_ranks;
#pragma unroll
  for (int r = 0; r < decode_ranks; ++r) {
    const float d = s.moments[r].x - mean;
    between = fmaf(d, d, between);
  }
  const float scale = rsqrtf(fmaf(between, float(own), square) * (1.0f / C) + a.epsilon);
  return fmaf(scale, product - mean * constant.x, constant.y);
}
/// The part of the projection: columns 8 warp and on of this block's, of inputs that are rounded to bf16; part 0 has the residual and the bias.
template <int C, int Steps, int Pitch>
__device__ inline void project_one(const unsigned char* w, const uint4* in, const decode_rows& a, const float* residual, const float2& bias,
                                   std::uint64_t to, int part, int rank) {
  constexpr int own = C / decode_ranks;
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, column = 8 * warp + 2 * (lane % 4);
  w = decode_chunk<Pitch>(w + 8 * warp * Pitch);
  float sums[2][4] = {};
#pragma unroll
  for (int i = 0; i < Steps; ++i) {
    const uint4 x = lane < 4 ? in[4 * i + lane] : uint4{0, 0, 0, 0}, y = *reinterpret_cast<const uint4*>(w + 64 * i);
    const std::uint32_t first[4] = {x.x, 0, x.y, 0}, second[4] = {x.z, 0, x.w, 0}, u[2] = {y.x, y.y}, v[2] = {y.z, y.w};
    mma_16x8x16_bf16(sums[0], first, u);
    mma_16x8x16_bf16(sums[1], second, v);
  }
  if (lane >= 4) return;
  float2 y{sums[0][0] + sums[1][0], sums[0][1] + sums[1][1]};
  if (part == 0) {
    y.x += residual[column] + bias.x;
    y.y += residual[column + 1] + bias.y;
  }
  *reinterpret_cast<float2*>(pointer<float>(to) + std::int64_t(part) * C + rank * own + column) = y;
}

}  // namespace isotope::cuda::gpu
