#pragma once
// Attention of one row of a step by the warps of a block: a tile of 16 positions at a time, scores and sums by tensor cores. A row of keys or values has 128 bytes, whose eight
// chunks are swizzled by the tensor copies, so that reading a column of chunks meets no bank twice.
#include "decode/step_few_lines.cuh"

namespace isotope::cuda::gpu {

/// Where chunk k of row r is.
__device__ inline int swizzled(int r, int k) { return 2 * decode_head * r + 16 * (k ^ (r & 7)); }
/// The operands of Rows positions, eight or 16, of a warp: of keys, elements 32 h and on of positions 8 j and on in key(j, h); of values, elements 16 j and on in value(j).
template <int Rows> struct decode_tile {
  const unsigned char *keys, *values;
  int row, matrix;
  __device__ decode_tile(int lane, const unsigned char* k, const unsigned char* v) : keys(k), values(v), row(lane % 8), matrix(lane / 8) {}
  __device__ void key(std::uint32_t (&k)[4], int j, int half) const { load_matrix_x4(k, keys + swizzled(8 * j + row, 4 * half + matrix)); }
  __device__ void value(std::uint32_t (&v)[4], int j) const {
    load_matrix_x4_transposed(v, values + swizzled(Rows == 16 ? matrix % 2 * 8 + row : row, 2 * j + matrix / 2));
  }
};
/// The same in registers.
struct decode_held_tile {
  std::uint32_t k[2][2][4], v[4][4];
  __device__ void load(const decode_tile<16>& from) {
#pragma unroll
    for (int j = 0; j < 4; ++j) from.key(k[j / 2][j % 2], j / 2, j % 2), from.value(v[j], j);
  }
  __device__ void key(std::uint32_t (&to)[4], int j, int half) const {
#pragma unroll
    for (int e = 0; e < 4; ++e) to[e] = k[j][half][e];
  }
  __device__ void value(std::uint32_t (&to)[4], int j) const {
#pragma unroll
    for (int e = 0; e < 4; ++e) to[e] = v[j][e];
  }
};
/// The scores' maximum and the sums of a warp. Lane g has the elements 8 j + 2 (g % 4) and the next one of each j; sum[j][0] and [1] those of weights rounded to bf16, [2] and
/// [3] those of what is left of the weights.
struct decode_tile_sums {
  float top, total = 0.0f, sum[decode_head / 8][4] = {};
  __device__ decode_tile_sums() : top(-__uint_as_float(0x7f800000u)) {}

  /// Adds 16 positions, or eight. query: 64 elements; seen: whether positions 2 (lane % 4), the next one, and those eight
  /// behind them count. What does not count may be anything.
  template <int Rows, class Tile>
  __device__ void add(int lane, const std::uint16_t* query, const Tile& tile, const bool (&seen)[4], float scale) {
    float score[4], most = top;
#pragma unroll
    for (int j = 0; j < Rows / 8; ++j) {
      float part[2][4] = {};
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        std::uint32_t k[4];
        tile.key(k, j, half);
#pragma unroll
        for (int s = 0; s < 2; ++s) {
          const std::uint32_t* const q = reinterpret_cast<const std::uint32_t*>(query) + 16 * half + 8 * s + lane % 4;
          const std::uint32_t a[4] = {q[0], 0, q[4], 0}, b[2] = {k[2 * s], k[2 * s + 1]};
          mma_16x8x16_bf16(part[half], a, b);
        }
      }
#pragma unroll
      for (int e = 0; e < 2; ++e) score[2 * j + e] = seen[2 * j + e] ? scale * (part[0][e] + part[1][e]) : -__uint_as_float(0x7f800000u);
    }
#pragma unroll
    for (int k = Rows / 4; k < 4; ++k) score[k] = -__uint_as_float(0x7f800000u);
#pragma unroll
    for (int k = 0; k < 4; ++k) most = fmaxf(most, score[k]);
#pragma unroll
    for (int apart = 1; apart < 4; apart *= 2) most = fmaxf(most, __shfl_xor_sync(all_lanes, most, apart));
    const float base = decode_sums::base_of(most), kept = exp2f(top - base);
    top = most;
    total *= kept;
    std::uint32_t weight[4], counts[2];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const float x = exp2f(score[2 * j] - base), y = exp2f(score[2 * j + 1] - base);
      total += x + y;
      weight[2 * j] = pair_bits<bf16>(x, y);
      weight[2 * j + 1] = pair_bits<bf16>(x - low_value<bf16>(weight[2 * j]), y - high_value<bf16>(weight[2 * j]));
      counts[j] = (seen[2 * j] ? 0xffffu : 0u) | (seen[2 * j + 1] ? 0xffff0000u : 0u);
    }
#pragma unroll
    for (int j = 0; j < decode_head / 8; j += 2) {
      std::uint32_t v[4];
      tile.value(v, j / 2);
#pragma unroll
      for (int s = 0; s < 2; ++s) {
        const std::uint32_t b[2] = {v[2 * s] & counts[0], Rows == 16 ? v[2 * s + 1] & counts[1] : 0};
#pragma unroll
        for (int e = 0; e < 4; ++e) sum[j + s][e] *= kept;
        mma_16x8x16_bf16(sum[j + s], weight, b);
      }
    }
  }
  /// Writes the sums, and the maximum and total, of the warp.
  template <class Head> __device__ void put(Head& to, int t) const {
    const int lane = t % 32, warp = t / 32;
    float all = total;
#pragma unroll
    for (int apart = 1; apart < 4; apart *= 2) all += __shfl_xor_sync(all_lanes, all, apart);
    float2 mine{0.0f, 0.0f};
#pragma unroll
    for (int j = 0; j < decode_head / 8; ++j)
      if (lane / 4 == j) mine = {sum[j][0] + sum[j][2], sum[j][1] + sum[j][3]};
    *reinterpret_cast<float2*>(&to.of_warp[warp][2 * lane]) = mine;
    if (lane == 0) to.tops[warp] = {top, all};
  }
};

/// Waits for copy c of layer i, and calls take(tile) for the warp's 16 positions of it; behind it, another copy may take the memory.
template <int C, class Take>
__device__ inline void take_chunk(decode_step_few_memory<C>& s, int t, int i, int c, int chunks, const Take& take) {
  const decode_step_few_chunk at(i, c, chunks);
  barrier_wait(shared_address(&s.cached_full[at.place]), std::uint32_t(at.uses) & 1);
  const unsigned char* keys = s.chunk(at.place) + 16 * (t / 32 % 2) * 2 * decode_head;
  take(decode_tile<16>(t % 32, keys, keys + decode_step_chunk * 2 * decode_head));
  warp_arrive(shared_address(&s.cached_empty[at.place]));
}
/// The first positions of each warp come to registers before the query is known, so that further copies are on their way.
template <int C>
__device__ inline void hold_first(decode_step_few_memory<C>& s, int t, const decode_step_few_place& p, int i, decode_held_tile& held) {
  const int chunks = p.chunks(), c = t / 64;
  if (c >= chunks) held = {};
  else take_chunk(s, t, i, c, chunks, [&](const decode_tile<16>& tile) { held.load(tile); });
}
/// Attention of the block's row to its share of the positions, in layer i: what the warps have is in s.head behind a barrier. Of two warps, one has the first 16 positions of a copy.
template <int C>
__device__ inline void attend_share(const decode_step& a, decode_step_few_memory<C>& s, int t, const decode_step_few_place& p,
                                    const decode_step_few_own& own, int i, const decode_held_tile& held) {
  const int lane = t % 32, warp = t / 32, quad = lane % 4, chunks = p.chunks(), first = warp / 2;
  const auto look = [&](int c, bool(&seen)[4]) {
    const int from = decode_step_chunk * c + 16 * (warp % 2) + 2 * quad;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int place = from + 8 * (k / 2) + k % 2;
      seen[k] = place < p.count;
      if (own.together)
#pragma unroll 1
        for (int m = 0; m < decode_most_rows; ++m) seen[k] = seen[k] && s.places[m] != p.first + place;
    }
  };
  decode_tile_sums sums;
  bool seen[4];
  look(first, seen);
  sums.add<16>(lane, s.query, held, seen, a.scale);
#pragma unroll 1
  for (int c = first + step_few_chunks; c < chunks; c += step_few_chunks) {
    look(c, seen);
    take_chunk(s, t, i, c, chunks, [&](const decode_tile<16>& tile) { sums.add<16>(lane, s.query, tile, seen, a.scale); });
  }
  if (warp == 2 * chunks % step_main_warps && p.there && p.split == 0) {
    if (own.together) {
      wait_for_sent(shared_address(&s.exchanged), std::uint32_t(i) & 1);
      if (lane == 0) barrier_expect(shared_address(&s.exchanged), std::uint32_t(4 * p.N * decode_head));
    }
    const std::uint32_t counted = own.counted >> (2 * quad);
    const bool counts[4] = {(counted & 1) != 0, (counted & 2) != 0, false, false};
    sums.add<8>(lane, s.query, decode_tile<8>(lane, s.rows[0], s.rows[1]), counts, a.scale);
  }
  sums.put(s.head, t);
}

/// Combines the sums of the block's warps, four elements by each of them, and sends them to all blocks of the cluster: the attended row, or what its other blocks' sums are
/// combined with.
template <int C> __device__ inline void combine_warps(decode_step_few_memory<C>& s, int t, const decode_step_few_place& p, int rank) {
  const int lane = t % 32, warp = t / 32, part = lane / 2, column = 4 * warp + lane % 2 * 2;
  static_assert(step_main_warps == 16 && decode_head == 4 * step_main_warps);
  if (!p.there) return;
  const float2 of = s.head.tops[part], mine = *reinterpret_cast<const float2*>(&s.head.of_warp[part][column]);
  float top = of.x;
#pragma unroll
  for (int apart = 2; apart < 32; apart *= 2) top = fmaxf(top, __shfl_xor_sync(all_lanes, top, apart));
  const float scale = exp2f(of.x - decode_sums::base_of(top));
  float total = of.y * scale, x = mine.x * scale, y = mine.y * scale;
#pragma unroll
  for (int apart = 2; apart < 32; apart *= 2) {
    total += __shfl_xor_sync(all_lanes, total, apart);
    x += __shfl_xor_sync(all_lanes, x, apart);
    y += __shfl_xor_sync(all_lanes, y, apart);
  }
  const std::uint32_t at = shared_address(&s.summed);
  if (p.splits == 1) {
    const std::uint32_t two = total == 0.0f ? 0 : pair_bits<bf16>(x / total, y / total), behind = __shfl_xor_sync(all_lanes, two, 1);
    if (part < decode_ranks && lane % 2 == 0)
      send(reinterpret_cast<const float*>(s.y + p.row * s.line_of_y + 2 * column), at, std::uint32_t(part), __uint_as_float(two),
           __uint_as_float(behind));
    return;
  }
  if (part >= decode_ranks) return;
  send(&s.head.sums[rank][column], at, std::uint32_t(part), x, y);
  if (warp == 0 && lane % 2 == 0) send(&s.head.of[rank].x, at, std::uint32_t(part), top, total);
}
/// Bytes of attended rows that come to each block in a layer.
__device__ inline std::uint32_t summed_bytes(const decode_step_few_place& p) {
  return std::uint32_t(p.splits == 1 ? 2 * p.N * decode_head : 4 * p.N * p.splits * (decode_head + 2));
}
/// Waits for the attended rows, by all main warps. Behind it, they are in s.y.
template <int C>
__device__ inline void gather_attended(decode_step_few_memory<C>& s, int t, const decode_step_few_place& p, std::uint32_t parity) {
  wait_for_sent(shared_address(&s.summed), parity);
  if (t == 0) barrier_expect(shared_address(&s.summed), summed_bytes(p));
  if (p.splits == 1) return;
  const int row = t / decode_head, column = t % decode_head, from = row * p.splits;
  if (row < p.N) {
    float top = s.head.of[from].x;
    for (int r = 1; r < p.splits; ++r) top = fmaxf(top, s.head.of[from + r].x);
    const float base = decode_sums::base_of(top);
    float total = 0.0f, y = 0.0f;
    for (int r = 0; r < p.splits; ++r) {
      const float scale = exp2f(s.head.of[from + r].x - base);
      total = fmaf(s.head.of[from + r].y, scale, total);
      y = fmaf(s.head.sums[from + r][column], scale, y);
    }
    reinterpret_cast<std::uint16_t*>(s.y + row * s.line_of_y)[column] = bf16_bits(total == 0.0f ? 0.0f : y / total);
  }
  named_barrier(step_all_main, step_main);
}

}  // namespace isotope::cuda::gpu
