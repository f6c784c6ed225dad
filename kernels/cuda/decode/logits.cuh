#pragma once
// The last norm and the logits of a step of decoding: warps stream rows of the table through shared memory and keep the normalised rows there.
#include "decode/row_sums.cuh"

namespace isotope::cuda::gpu {

/// A warp has a ring of pieces of eight rows of the table: `stages` of them, of `piece` elements along C.
template <int C, int Rows> struct decode_logits_memory {
  static constexpr int most_bytes = decode_logits_bytes(C, Rows);
  static constexpr int warps = decode_logits_threads / 32, piece = decode_piece, pieces = C / piece, stages = decode_stages,
                       pitch = decode_pitch(piece), line = decode_pitch(C);
  unsigned char weight[warps][stages][8 * pitch];
  unsigned char y[Rows * line];  // normalised rows
  decode_row_memory<C, Rows> x;
};
/// The last norm and the product with the table. Clusters of Ranks blocks add up the parts of the rows together.
template <int C, int Rows, int Ranks> __device__ inline void logits_of_rows(const decode_logits& a) {
  using memory = decode_logits_memory<C, Rows>;
  static_assert(int(sizeof(memory)) <= memory::most_bytes);
  memory& s = *reinterpret_cast<memory*>(dynamic_shared());
  start_dependents();
  const int t = int(threadIdx.x), lane = t % 32, warp = t / 32, N = a.rows.N, rank = int(blockIdx.x) % Ranks;
  const int tiles = (a.V + 7) / 8, step = int(gridDim.x) * memory::warps, first = int(blockIdx.x) + int(gridDim.x) * warp;
  const int mine = first < tiles ? (tiles - first + step - 1) / step * memory::pieces : 0;
  const auto load = [&](int i) {
    if (i < mine) {
      const int tile = first + i / memory::pieces * step, column = i % memory::pieces * memory::piece;
      unsigned char* to = s.weight[warp][i % memory::stages];
#pragma unroll
      for (int k = 0; k < 8 * memory::piece / 8 / 32; ++k) {
        const int e = lane + 32 * k, row = e / (memory::piece / 8), chunk = e % (memory::piece / 8);
        const int v = 8 * tile + row < a.V ? 8 * tile + row : a.V - 1;
        copy_async_16(to + row * memory::pitch + 16 * chunk,
                      pointer<const std::uint16_t>(a.weight) + std::int64_t(v) * C + column + 8 * chunk);
      }
    }
    copy_async_commit();
  };
  if constexpr (Ranks > 1) {
    if (t == 0) {
      barrier_init(shared_address(&s.x.arrived), 1);
      barrier_init_fence();
      barrier_expect(shared_address(&s.x.arrived), std::uint32_t(N * C * 4));
    }
    cluster_arrive();
  }
  load_norm(a.rows, s.x);
#pragma unroll 1
  for (int i = 0; i < memory::stages; ++i) load(i);
  if constexpr (Ranks > 1) cluster_wait();
  wait_for_dependencies();
  constexpr int share = C / Ranks;
  for (int i = t; i < N * share / 2; i += decode_logits_threads) {
    const int row = i / (share / 2), column = rank * share + i % (share / 2) * 2;
    float sum[2];
    sum_of_parts<C, 2>(a.rows, row, column, sum);
    if constexpr (Ranks == 1) s.x.x[row][column] = sum[0], s.x.x[row][column + 1] = sum[1];
#pragma unroll
    for (int to = 0; Ranks > 1 && to < Ranks; ++to)
      send(&s.x.x[row][column], shared_address(&s.x.arrived), std::uint32_t(to), sum[0], sum[1]);
  }
  copy_async_wait<memory::stages - 1>();  // the weights of the norm
  if constexpr (Ranks > 1) wait_for_sent(shared_address(&s.x.arrived), 0);
  __syncthreads();
  const float2 moments = moments_of_rows(a.rows, s.x);
  for (int i = t; i < N * C / 8; i += decode_logits_threads) {
    const int row = i / (C / 8), chunk = i % (C / 8);
    *reinterpret_cast<uint4*>(s.y + row * memory::line + 16 * chunk) =
        normalised(a.rows, s.x, row, Rows == 1 ? moments : s.x.moments[row], 8 * chunk);
  }
  __syncthreads();
  const bool there = lane / 4 < N && lane / 4 < Rows;
  const unsigned char* y = s.y + (there ? lane / 4 : 0) * memory::line + 16 * (lane % 4);
  constexpr int steps = memory::piece / 32;
#pragma unroll 1
  for (int i = 0; i < mine; i += memory::pieces) {
    float sums[1][4] = {};
#pragma unroll
    for (int k = 0; k < memory::pieces; ++k) {
      copy_async_wait<memory::stages - 1>();
      __syncwarp();
      uint4 part[steps];
#pragma unroll
      for (int j = 0; j < steps; ++j) part[j] = there ? *reinterpret_cast<const uint4*>(y + 64 * (k * steps + j)) : uint4{0, 0, 0, 0};
      multiply_rows<1, steps, memory::pitch>(decode_chunk<memory::pitch>(s.weight[warp][(i + k) % memory::stages]), part, sums);
      __syncwarp();
      load(i + k + memory::stages);
    }
    const int row = lane / 4, column = 8 * (first + i / memory::pieces * step) + 2 * (lane % 4);
    if (row < N && row < Rows) {
      std::uint16_t* to = pointer<std::uint16_t>(a.y) + std::int64_t(row) * a.V + column;
      if (column < a.V) to[0] = bf16_bits(sums[0][0]);
      if (column + 1 < a.V) to[1] = bf16_bits(sums[0][1]);
    }
  }
}

}  // namespace isotope::cuda::gpu
