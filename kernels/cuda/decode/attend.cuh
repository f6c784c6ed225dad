#pragma once
// Attention of one row by the blocks of a cluster, which have one head together: an eighth of the cached positions each. Eight threads hold a key or value of 64 elements.
// Maxima and sums are combined in a fixed order: four groups of a warp, warps, then blocks.
#include "decode/row_sums.cuh"

namespace isotope::cuda::gpu {

/// A row's cache, and which positions this block has.
struct decode_place {
  int slot, own, first, end;
  bool idle;
  __device__ decode_place(const decode_attention& a, int row, int rank) {
    slot = pointer<const std::int32_t>(a.sequence)[row], own = pointer<const std::int32_t>(a.position)[row];
    idle = slot < 0 || slot >= a.B || own < 0 || own >= a.T;
    const int count = idle ? 0 : own, each = (count + decode_ranks - 1) / decode_ranks;
    first = rank * each < count ? rank * each : count;
    end = first + each < count ? first + each : count;
  }
};

/// The scores' maximum and sums of a group of eight threads: each has eight elements of 64.
struct decode_sums {
  float top, total = 0.0f, sum[8] = {};
  __device__ decode_sums() : top(-__builtin_huge_valf()) {}

  /// Adds Count keys and values; `seen`: whether they count.
  template <int Count>
  __device__ void add(const float (&q)[8], const uint4 (&keys)[Count], const uint4 (&values)[Count], const bool (&seen)[Count]) {
    float score[Count], most = top;
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      float k[8];
      unpack<bf16>(keys[i], k);
      float dot = 0.0f;
#pragma unroll
      for (int j = 0; j < 8; ++j) dot = fmaf(q[j], k[j], dot);
      score[i] = dot;
    }
#pragma unroll
    for (int apart = 1; apart < 8; apart *= 2)
#pragma unroll
      for (int i = 0; i < Count; ++i) score[i] += __shfl_xor_sync(all_lanes, score[i], apart);
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      score[i] = seen[i] ? score[i] : -__uint_as_float(0x7f800000u);
      most = fmaxf(most, score[i]);
    }
    const float base = base_of(most), kept = exp2f(top - base);
    top = most;
    total *= kept;
#pragma unroll
    for (int j = 0; j < 8; ++j) sum[j] *= kept;
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      const float weight = exp2f(score[i] - base);
      float v[8];
      unpack<bf16>(values[i], v);
      total += weight;
#pragma unroll
      for (int j = 0; j < 8; ++j) sum[j] = fmaf(weight, seen[i] ? v[j] : 0.0f, sum[j]);
    }
  }
  /// Adds one key and value, by all threads of the warp.
  __device__ void hold(const float (&q)[8], const uint4& key, const uint4& value, bool seen_it) {
    const uint4 k[1] = {key}, v[1] = {value};
    const bool seen[1] = {seen_it};
    add(q, k, v, seen);
  }
  /// Makes top and total those of the four groups of the warp. Returns what the thread's sums are to be scaled by.
  __device__ float combine_tops() {
    float most = fmaxf(top, __shfl_xor_sync(all_lanes, top, 8));
    most = fmaxf(most, __shfl_xor_sync(all_lanes, most, 16));
    const float scale = exp2f(top - base_of(most));
    top = most;
    total *= scale;
    total += __shfl_xor_sync(all_lanes, total, 8);
    total += __shfl_xor_sync(all_lanes, total, 16);
    return scale;
  }
  /// Combines the four groups of the warp. Returns two elements of each thread: 4 (lane / 16) + 2 (lane / 8 % 2) and the next one of its eight.
  __device__ float2 combine_in_pairs() {
    const float scale = combine_tops();
    const bool upper = (threadIdx.x & 16) != 0, second = (threadIdx.x & 8) != 0;
    float four[4], two[2];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float mine = scale * (upper ? sum[4 + j] : sum[j]), theirs = scale * (upper ? sum[j] : sum[4 + j]);
      four[j] = mine + __shfl_xor_sync(all_lanes, theirs, 16);
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) two[j] = (second ? four[2 + j] : four[j]) + __shfl_xor_sync(all_lanes, second ? four[j] : four[2 + j], 8);
    return {two[0], two[1]};
  }
  __device__ static float base_of(float top) { return top == -__uint_as_float(0x7f800000u) ? 0.0f : top; }
};

/// Keys and values of one row: those of groups of eight threads, one after the other. The first ones are read before the launch before has ended.
template <int Warps> struct decode_keys {
  static constexpr int groups = 4 * Warps, turns = (decode_most_positions / decode_ranks + groups - 1) / groups,
                       held = turns < 2 ? turns : 2;
  std::uint64_t keys, values;  // of the thread's elements of the block's first position
  uint4 k[held], v[held];
  int count;  // positions of the block
  __device__ decode_keys(const decode_attention& a, const decode_place& p, int head, int H) : count(p.end - p.first) {
    const std::int64_t at = ((std::int64_t(p.slot) * H + head) * a.T + p.first) * decode_head + int(threadIdx.x) % 8 * 8;
    keys = a.keys + 2 * at, values = a.values + 2 * at;
#pragma unroll
    for (int i = 0; i < held; ++i) load(i, k[i], v[i]);
  }
  __device__ bool seen(int i) const { return i * groups + int(threadIdx.x) / 8 < count; }
  __device__ void load(int i, uint4& key, uint4& value) const {
    const int t = seen(i) ? i * groups + int(threadIdx.x) / 8 : -1;
    key = t >= 0 ? pointer<const uint4>(keys)[t * (decode_head / 8)] : uint4{0, 0, 0, 0};
    value = t >= 0 ? pointer<const uint4>(values)[t * (decode_head / 8)] : uint4{0, 0, 0, 0};
  }
  /// take(key, value, seen) for each turn that has any.
  template <class Take> __device__ void each(const Take& take) const {
#pragma unroll
    for (int i = 0; i < turns; ++i) {
      if (i * groups >= count) continue;
      if (i < held) {
        take(k[i < held ? i : 0], v[i < held ? i : 0], seen(i));
      } else {
        uint4 key, value;
        load(i, key, value);
        take(key, value, seen(i));
      }
    }
  }
};

/// What the blocks of a cluster compute of a single row. `x`: the head's result, rounded to bf16.
template <int Warps> struct decode_one_head {
  float qkv[3][decode_head];  // the query is scaled
  float of_warp[Warps][decode_head];
  float2 tops[Warps];  // maximum of scores in units of log2, and sum of their powers of two
  float sums[decode_ranks][decode_head];
  float2 of[decode_ranks];
  uint4 x[decode_head / 8];
  std::uint64_t summed;
};
/// Sends the sums of the block's warps to all blocks of the cluster, and their maximum and total.
template <int Warps, class Head> __device__ inline void send_sums(Head& s, int rank) {
  static_assert(Warps >= decode_ranks && decode_head == 64);
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  if (warp >= decode_ranks) return;  // each of the others sends them to one block
  float top = s.tops[0].x;
#pragma unroll
  for (int w = 1; w < Warps; ++w) top = fmaxf(top, s.tops[w].x);
  const float base = decode_sums::base_of(top);
  float total = 0.0f;
  float2 sum{0.0f, 0.0f};
#pragma unroll
  for (int w = 0; w < Warps; ++w) {
    const float2 of = s.tops[w], y = *reinterpret_cast<const float2*>(&s.of_warp[w][2 * lane]);
    const float scale = exp2f(of.x - base);
    total = fmaf(of.y, scale, total);
    sum.x = fmaf(y.x, scale, sum.x);
    sum.y = fmaf(y.y, scale, sum.y);
  }
  send(&s.sums[rank][2 * lane], shared_address(&s.summed), std::uint32_t(warp), sum.x, sum.y);
  if (lane == 0) send(&s.of[rank].x, shared_address(&s.summed), std::uint32_t(warp), top, total);
}
/// Attention of a single row, whose cached keys and values are in registers: all warps have some of them. Its query, key and value are in shared memory.
template <int Warps> __device__ inline void attend_one(bool idle, const decode_keys<Warps>& cached, decode_one_head<Warps>& s, int rank) {
  const int t = int(threadIdx.x), lane = t % 32, warp = t / 32, column = lane % 8 * 8;
  const float4 low = *reinterpret_cast<const float4*>(&s.qkv[0][column]), high = *reinterpret_cast<const float4*>(&s.qkv[0][column + 4]);
  const float q[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  decode_sums sums;
  cached.each([&](const uint4& k, const uint4& v, bool seen) { sums.hold(q, k, v, seen); });
  if (rank == 0 && warp == 0 && !idle) {
    const uint4 k[1] = {packed_eight(&s.qkv[1][column])}, v[1] = {packed_eight(&s.qkv[2][column])};
    const bool seen[1] = {lane < 8};
    sums.add(q, k, v, seen);
  }
  const float2 pair = sums.combine_in_pairs();
  *reinterpret_cast<float2*>(&s.of_warp[warp][column + (lane & 16) / 4 + (lane & 8) / 4]) = pair;
  if (lane == 0) s.tops[warp] = {sums.top, sums.total};
  __syncthreads();
  send_sums<Warps>(s, rank);
  wait_for_sent(shared_address(&s.summed), 0);
  if (t < decode_head) {
    float top = s.of[0].x;
#pragma unroll
    for (int r = 1; r < decode_ranks; ++r) top = fmaxf(top, s.of[r].x);
    const float base = decode_sums::base_of(top);
    float total = 0.0f, y = 0.0f;
#pragma unroll
    for (int r = 0; r < decode_ranks; ++r) {
      const float scale = exp2f(s.of[r].x - base);
      total = fmaf(s.of[r].y, scale, total);
      y = fmaf(s.sums[r][t], scale, y);
    }
    reinterpret_cast<std::uint16_t*>(s.x)[t] = bf16_bits(total == 0.0f ? 0.0f : y / total);
  }
  __syncthreads();
}

}  // namespace isotope::cuda::gpu
