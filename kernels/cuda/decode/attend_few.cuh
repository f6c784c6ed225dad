#pragma once
// Attention of up to eight rows by a cluster that has one head: each row has as many blocks as there are eighths for it, which divide its cached positions.
#include "decode/attend.cuh"
#include "decode/few.h"

namespace isotope::cuda::gpu {

/// The row that a block attends for, and its share of the cached positions: the first ones come to shared memory, the others to registers.
struct decode_few_place {
  int row, split, splits, slot, own, first, count;  // count: 0 for a row that is idle, or is none
  bool there, idle;
  std::uint64_t keys, values;  // of the first position
  __device__ decode_few_place(const decode_attention& a, int head, int H, int rank) {
    splits = a.rows.N > 4 ? 1 : a.rows.N > 2 ? 2 : a.rows.N > 1 ? 4 : 8;
    row = rank / splits, split = rank % splits;
    there = row < a.rows.N;
    slot = there ? pointer<const std::int32_t>(a.sequence)[row] : -1, own = there ? pointer<const std::int32_t>(a.position)[row] : -1;
    idle = slot < 0 || slot >= a.B || own < 0 || own >= a.T;
    const int all = idle ? 0 : own, each = (all + splits - 1) / splits;
    first = min(split * each, all);
    count = min(each, all - first);
    const std::int64_t at = ((std::int64_t(idle ? 0 : slot) * H + head) * a.T + first) * decode_head;
    keys = a.keys + 2 * at, values = a.values + 2 * at;
  }
  __device__ int held() const { return min(count, decode_held_positions); }
};

template <int C> struct decode_few_head {
  static constexpr int warps = C / 64, line = decode_pitch(decode_head);
  alignas(128) unsigned char keys[2 * decode_held_positions * decode_head], values[2 * decode_held_positions * decode_head];
  float4 constants[decode_ranks][3 * decode_head / 2];  // of two lines each, from each block
  float products[decode_ranks][3 * decode_head];
  float2 moments[decode_ranks];
  float qkv[3][decode_head];  // of the block's row; the query is scaled
  float of_warp[warps][decode_head];
  float2 tops[warps];
  float sums[decode_ranks][decode_head];  // of the rows, from each of their blocks
  float2 of[decode_ranks];
  alignas(16) unsigned char x[decode_most_rows * line];  // the results, rounded to bf16
  float rows[decode_most_rows][2][decode_head];          // keys and values of all rows, where some have the same sequence
  std::int32_t places[decode_most_rows];                 // positions of the rows that have the sequence of the block's row; -1: another one
  std::uint64_t loaded, cached, prepared, arrived, exchanged, summed;
};

/// Adds Count keys and values of group of eight threads: those of turns `turn` and on; from(turn, key, value) has them.
template <int Count, bool Together, class Head>
__device__ inline void attend_turns(const Head& s, const decode_few_place& p, const float (&q)[8], const uint4 (&k)[Count],
                                    const uint4 (&v)[Count], int turn, decode_sums& sums) {
  constexpr int groups = 4 * Head::warps;
  bool seen[Count];
#pragma unroll
  for (int i = 0; i < Count; ++i) {
    const int t = (turn + i) * groups + int(threadIdx.x) / 8;
    seen[i] = t < p.count;
    if constexpr (Together)
#pragma unroll
      for (int m = 0; m < decode_most_rows; ++m) seen[i] = seen[i] && s.places[m] != p.first + t;
  }
  sums.add(q, k, v, seen);
}

/// The keys and values of two turns that are not in shared memory.
struct decode_two_turns {
  uint4 k[2], v[2];
  template <int Groups> __device__ static decode_two_turns of(const decode_few_place& p, int turn) {
    decode_two_turns r{};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int t = (turn + i) * Groups + int(threadIdx.x) / 8;
      if (t >= p.count) continue;
      r.k[i] = pointer<const uint4>(p.keys)[t * (decode_head / 8) + int(threadIdx.x) % 8];
      r.v[i] = pointer<const uint4>(p.values)[t * (decode_head / 8) + int(threadIdx.x) % 8];
    }
    return r;
  }
};

/// Attention of the block's row to its share of the positions. `ahead`: the first two turns that are not in shared memory. Ends with a barrier of the block.
template <bool Together, int C>
__device__ inline void attend_share(const decode_attention& a, decode_few_head<C>& s, const decode_few_place& p, decode_two_turns& ahead) {
  using head = decode_few_head<C>;
  constexpr int groups = 4 * head::warps, held = decode_held_positions / groups;
  static_assert(decode_held_positions % groups == 0 && held % 2 == 0);
  const int t = int(threadIdx.x), lane = t % 32, warp = t / 32, column = lane % 8 * 8;
  const float4 low = *reinterpret_cast<const float4*>(&s.qkv[0][column]), high = *reinterpret_cast<const float4*>(&s.qkv[0][column + 4]);
  const float q[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  decode_sums sums;
#pragma unroll 1
  for (int i = 0; i < held && i * groups < p.count; i += 2) {
    uint4 k[2], v[2];
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int at = (i + j) * groups * (decode_head / 8) + t;
      k[j] = reinterpret_cast<const uint4*>(s.keys)[at];
      v[j] = reinterpret_cast<const uint4*>(s.values)[at];
      if ((i + j) * groups + t / 8 >= p.count) k[j] = v[j] = uint4{0, 0, 0, 0};
    }
    attend_turns<2, Together>(s, p, q, k, v, i, sums);
  }
#pragma unroll 1
  for (int i = held; i * groups < p.count; i += 2) {
    if constexpr (Together) {  // the comparisons with other rows take the registers
      attend_turns<2, Together>(s, p, q, ahead.k, ahead.v, i, sums);
      ahead = decode_two_turns::of<groups>(p, i + 2);
    } else {
      const auto behind = decode_two_turns::of<groups>(p, i + 2);
      attend_turns<2, Together>(s, p, q, ahead.k, ahead.v, i, sums);
      ahead = behind;
    }
  }
  if (p.split == 0 && !p.idle && warp < a.rows.N) {  // warp m adds row m, if it counts
    bool counts = warp == p.row;
    if constexpr (Together) {
      const int mine = s.places[warp];
      counts = mine >= 0 && mine <= p.own;
      for (int m = warp + 1; m < a.rows.N; ++m) counts = counts && s.places[m] != mine;
    }
    if (counts) {
      const uint4 k[1] = {packed_eight(Together ? &s.rows[warp][0][column] : &s.qkv[1][column])},
                  v[1] = {packed_eight(Together ? &s.rows[warp][1][column] : &s.qkv[2][column])};
      const bool seen[1] = {lane < 8};
      sums.add(q, k, v, seen);
    }
  }
  const float2 pair = sums.combine_in_pairs();
  *reinterpret_cast<float2*>(&s.of_warp[warp][column + (lane & 16) / 4 + (lane & 8) / 4]) = pair;
  if (lane == 0) s.tops[warp] = {sums.top, sums.total};
  __syncthreads();
}

/// Sends the block's sums to all blocks of the cluster, and combines those of each row; ends with a barrier of the block.
template <int C>
__device__ inline void combine_shares(const decode_attention& a, decode_few_head<C>& s, const decode_few_place& p, int rank) {
  send_sums<C / 64>(s, rank);
  wait_for_sent(shared_address(&s.summed), 0);
  for (int i = int(threadIdx.x); i < a.rows.N * decode_head; i += int(blockDim.x)) {
    const int row = i / decode_head, column = i % decode_head, from = row * p.splits;
    float top = s.of[from].x;
    for (int r = 1; r < p.splits; ++r) top = fmaxf(top, s.of[from + r].x);
    const float base = decode_sums::base_of(top);
    float total = 0.0f, y = 0.0f;
    for (int r = 0; r < p.splits; ++r) {
      const float scale = exp2f(s.of[from + r].x - base);
      total = fmaf(s.of[from + r].y, scale, total);
      y = fmaf(s.sums[from + r][column], scale, y);
    }
    reinterpret_cast<std::uint16_t*>(s.x + row * s.line)[column] = bf16_bits(total == 0.0f ? 0.0f : y / total);
  }
  __syncthreads();
}

}  // namespace isotope::cuda::gpu
