#pragma once
// Attention of one token to cached keys and values by few blocks, each of which walks over rows and heads. Bound by reading the caches, so each warp has a ring of
// stages in shared memory, which bulk copies fill ahead: of later rows, too, and of the first ones before the kernels that this one depends on have ended, as
// positions that this launch does not append are in the caches long before. A stage has 4 positions for each group of LANES threads, 16 bytes of a key and a value for
// each thread; the stages of a row and head go to the warps in turns. A group keeps its own maximum and sums, which are combined in a fixed order over the groups
// of a warp, then the warps, so that a result depends on nothing but its own query, keys and values.
#include "device/bulk_once.cuh"
#include "device/early.cuh"
#include "rows/vectors.cuh"

#include "cached.cuh"

namespace isotope::cuda::gpu {

/// A row and a head.
struct copied_place {
  std::int64_t row;      // the element of the caches that is the head's position 0
  int n, g;              // the row of q and the head
  int slot, own, first;  // own: the query's position, -1 of an idle row; first: the first one that it sees
  int whole;             // positions before it are in the caches before this launch
  int last;              // the last row of the launch with the position `own` of this sequence
};

template <int T, int LANES> struct copied_attention {
  static constexpr int run = vector_elems<T>, columns = LANES * run, groups = 32 / LANES, ahead = 4, positions = ahead * groups,
                       warps = copied_threads / 32, half = copied_stage_bytes / 2;
  static_assert(half == ahead * 32 * 16);
  struct part {
    cached_top of;
    float sum[columns];
  };
  struct shared {
    part of_warp[2][warps];
    alignas(8) std::uint64_t filled[warps][copied_stages];
  };

  const cached_heads& a;
  shared& s;
  std::uint32_t ring;  // of this warp
  int lane, warp, column, group, items;
  std::int32_t sequence[2], position[2];  // of rows `lane` and `lane` + 32, where the launch appends rows

  __device__ copied_attention(const cached_heads& given, shared& to) : a(given), s(to) {
    lane = int(threadIdx.x % 32), warp = int(threadIdx.x / 32), column = lane % LANES * run, group = lane / LANES;
    ring = shared_address(dynamic_shared()) + std::uint32_t(warp * copied_stages * copied_stage_bytes);
    items = int(a.N) * a.G;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int m = lane + 32 * i;
      const bool there = a.k != 0 && m < a.N;
      sequence[i] = there ? pointer<const std::int32_t>(a.sequence)[m] : -1;
      position[i] = there ? pointer<const std::int32_t>(a.position)[m] : -1;
    }
  }
  __device__ static std::uint64_t at(std::uint64_t base, std::int64_t i) { return base + std::uint64_t(i * element_bytes<T>); }
  __device__ std::uint32_t filled(int stage) const { return shared_address(&s.filled[warp][stage]); }

  __device__ copied_place place(int item) const {
    copied_place p;
    p.n = item / a.G, p.g = item - p.n * a.G;
    const bool appends = a.k != 0;
    p.slot =
        appends ? __shfl_sync(cached_lanes, p.n < 32 ? sequence[0] : sequence[1], p.n % 32) : pointer<const std::int32_t>(a.sequence)[p.n];
    p.own =
        appends ? __shfl_sync(cached_lanes, p.n < 32 ? position[0] : position[1], p.n % 32) : pointer<const std::int32_t>(a.position)[p.n];
    if (p.slot < 0 || p.slot >= a.B || p.own < 0 || p.own >= a.T) p.slot = 0, p.own = -1;
    p.row = (std::int64_t(p.slot) * a.G + p.g) * a.T * a.D;
    p.first = a.window != 0 && p.own >= a.window ? p.own + 1 - a.window : 0;
    p.whole = p.own + 1, p.last = p.n;
    if (appends) {
      unsigned least = unsigned(p.own), last = 0;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (sequence[i] != p.slot || position[i] < 0) continue;
        least = unsigned(position[i]) < least ? unsigned(position[i]) : least;
        if (position[i] == p.own) last = unsigned(lane + 32 * i);
      }
      least = __reduce_min_sync(cached_lanes, least), last = __reduce_max_sync(cached_lanes, last);
      if (p.own >= 0) p.whole = int(least), p.last = int(last);
    }
    return p;
  }
  /// The first stage of this warp.
  __device__ int first_stage(const copied_place& p) const {
    const int c = p.first / positions;
    return c + ((warp - c) & (warps - 1));
  }

  /// What is copied next.
  struct cursor {
    std::int64_t row;
    int item, c, own, whole, stage;
  };
  /// Goes on to the next item that has a stage for this warp.
  __device__ void settle(cursor& k) const {
    while (k.item < items && k.c * positions > k.own) {
      k.item += int(gridDim.x);
      if (k.item < items) begin(k);
    }
  }
  __device__ void begin(cursor& k) const {
    const copied_place p = place(k.item);
    k.row = p.row, k.own = p.own, k.whole = p.whole, k.c = first_stage(p);
  }
  /// Starts the copies of the next stage, if there is one.
  __device__ void copy_next(cursor& k) const {
    if (k.item >= items) return;
    const int from = k.c * positions, count = k.whole - from < positions ? k.whole - from : positions;
    if (lane == 0) {
      const std::uint32_t barrier = filled(k.stage), to = ring + std::uint32_t(k.stage * copied_stage_bytes);
      const std::int64_t first = k.row + std::int64_t(from) * a.D;
      if (count > 0) {
        const std::uint32_t bytes = std::uint32_t(count * a.D * element_bytes<T>);
        barrier_expect(barrier, 2 * bytes);
        bulk_load_once(to, at(a.keys, first), bytes, barrier);
        bulk_load_once(to + half, at(a.values, first), bytes, barrier);
      } else {
        barrier_arrive(barrier);
      }
    }
    k.stage = k.stage + 1 == copied_stages ? 0 : k.stage + 1;
    k.c += warps;
    settle(k);
  }

  /// The key or value of position t, which the caches do not have before this launch: that of the last row with this position, if there is one.
  __device__ uint4 direct(const copied_place& p, int t, bool value) const {
    int m = int(a.N) - 1;
    while (m >= 0 && (pointer<const std::int32_t>(a.sequence)[m] != p.slot || pointer<const std::int32_t>(a.position)[m] != t)) --m;
    return m < 0 ? *pointer<const uint4>(at(value ? a.values : a.keys, p.row + std::int64_t(t) * a.D + column)) : appended(p, m, value);
  }
  __device__ uint4 appended(const copied_place& p, int m, bool value) const {
    return *pointer<const uint4>(at(value ? a.v : a.k, m * (value ? a.v_stride : a.k_stride) + std::int64_t(p.g) * a.D + column));
  }
  /// Whether this thread has elements of position t.
  __device__ bool has(int t) const { return t >= 0 && (t / positions & (warps - 1)) == warp && t % groups == group && column < a.D; }

  __device__ void run_all() {
    cursor k;
    k.item = int(blockIdx.x), k.stage = 0;
    if (k.item < items) {
      begin(k);
      settle(k);
    }
#pragma unroll 1
    for (int i = 0; i < copied_stages; ++i) copy_next(k);
    wait_for_dependencies();
    int stage = 0, buffer = 0;
    std::uint32_t parity = 0;
    uint4 query;
    const auto load_query = [&](int item) {
      query = make_uint4(0, 0, 0, 0);
      const int n = item / a.G;
      if (item < items && column < a.D)
        query = *pointer<const uint4>(at(a.q, n * a.q_stride + std::int64_t(item - n * a.G) * a.D + column));
    };
    load_query(int(blockIdx.x));
#pragma unroll 1
    for (int item = int(blockIdx.x); item < items; item += int(gridDim.x), buffer ^= 1) {
      const copied_place p = place(item);
      uint4 own_key = make_uint4(0, 0, 0, 0), own_value = own_key;
      const bool owns = a.k != 0 && has(p.own);
      if (owns) own_key = appended(p, p.last, false), own_value = appended(p, p.last, true);
      float q[run], sum[run];
      cached_top of{-__uint_as_float(0x7f800000u), 0.0f};
      unpack<T>(query, q);
#pragma unroll
      for (int j = 0; j < run; ++j) sum[j] = 0.0f;
      load_query(item + int(gridDim.x));
#pragma unroll 1
      for (int c = first_stage(p); c * positions <= p.own; c += warps) {
        barrier_wait(filled(stage), parity);
        attend(p, c, ring + std::uint32_t(stage * copied_stage_bytes), own_key, own_value, q, sum, of);
        __syncwarp();
        copy_next(k);
        if (k.item >= items) start_dependents();  // they would take room from blocks of this launch if they came before
        if (++stage == copied_stages) stage = 0, parity ^= 1;
      }
      if (owns && p.last == p.n) {
        const std::int64_t to = p.row + std::int64_t(p.own) * a.D + column;
        *pointer<uint4>(at(a.keys, to)) = own_key;
        *pointer<uint4>(at(a.values, to)) = own_value;
      }
      finish(p, buffer, sum, of);
    }
  }

  /// Attends to the positions of stage c.
  __device__ void attend(const copied_place& p, int c, std::uint32_t from, const uint4& own_key, const uint4& own_value,
                         const float (&q)[run], float (&sum)[run], cached_top& of) const {
    const int t0 = c * positions + group;
    const std::uint32_t mine = from + std::uint32_t((group * a.D + column) * element_bytes<T>),
                        step = std::uint32_t(groups * a.D * element_bytes<T>);
    uint4 keys[ahead], values[ahead];
    bool seen[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const int t = t0 + i * groups;
      seen[i] = t >= p.first && t <= p.own;
      keys[i] = values[i] = make_uint4(0, 0, 0, 0);
      if (!seen[i] || column >= a.D) continue;
      if (t < p.whole) {
        keys[i] = load_shared_16(mine + std::uint32_t(i) * step);
        values[i] = load_shared_16(mine + std::uint32_t(i) * step + half);
      } else {
        keys[i] = own_key, values[i] = own_value;
      }
    }
    if (p.whole < p.own && c * positions + positions > p.whole) {  // rows of this sequence that follow each other
#pragma unroll 1
      for (int t = p.whole; t < p.own; ++t)
#pragma unroll
        for (int i = 0; i < ahead; ++i)
          if (t == t0 + i * groups && seen[i] && column < a.D) keys[i] = direct(p, t, false), values[i] = direct(p, t, true);
    }
    float score[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      float key[run], dot = 0.0f;
      unpack<T>(keys[i], key);
#pragma unroll
      for (int j = 0; j < run; ++j) dot = fmaf(q[j], key[j], dot);
#pragma unroll
      for (int apart = LANES / 2; apart > 0; apart /= 2) dot += __shfl_xor_sync(cached_lanes, dot, apart);
      score[i] = seen[i] ? a.scale * dot : -__uint_as_float(0x7f800000u);
    }
    float top = of.top;
#pragma unroll
    for (int i = 0; i < ahead; ++i) top = fmaxf(top, score[i]);
    const float base = cached_base(top), kept = exp2f(of.top - base);
    of.top = top;
    of.total *= kept;
#pragma unroll
    for (int j = 0; j < run; ++j) sum[j] *= kept;
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const float weight = exp2f(score[i] - base);
      of.total += weight;
      float value[run];
      unpack<T>(values[i], value);
#pragma unroll
      for (int j = 0; j < run; ++j) sum[j] = fmaf(weight, value[j], sum[j]);
    }
  }

  /// Combines the groups of each warp, then the warps, and writes the results. One barrier suffices with two buffers: who writes into the first one again has met
  /// those who have read it at the barrier of the second.
  __device__ void finish(const copied_place& p, int buffer, float (&sum)[run], cached_top& of) {
    part& mine = s.of_warp[buffer][warp];
#pragma unroll
    for (int apart = LANES; apart < 32; apart *= 2) {
      const float other = __shfl_xor_sync(cached_lanes, of.top, apart), top = fmaxf(of.top, other), base = cached_base(top);
      const float own = exp2f(of.top - base), theirs = exp2f(other - base);
      of.total = of.total * own + __shfl_xor_sync(cached_lanes, of.total, apart) * theirs;
      of.top = top;
#pragma unroll
      for (int j = 0; j < run; ++j) sum[j] = sum[j] * own + __shfl_xor_sync(cached_lanes, sum[j], apart) * theirs;
    }
    if (lane == 0) mine.of = of;
#pragma unroll
    for (int j = 0; j < run; ++j)
      if (lane < LANES) mine.sum[column + j] = sum[j];
    __syncthreads();
    for (int c = int(threadIdx.x); c < a.D; c += copied_threads) {
      float total, result;
      cached_attention<T, LANES, 1>::cached_combined(
          warps, [&](int w) { return s.of_warp[buffer][w].of; }, [&](int w) { return s.of_warp[buffer][w].sum[c]; }, total, result);
      put<T>(a.y, p.n * a.y_stride + std::int64_t(p.g) * a.D + c, total == 0.0f ? 0.0f : result / total);
    }
  }
};

template <int T, int LANES> __device__ inline void attend_by_copies(const cached_heads& a) {
  using attention = copied_attention<T, LANES>;
  auto& s = *reinterpret_cast<typename attention::shared*>(dynamic_shared() + copied_ring_bytes);
  static_assert(sizeof s <= copied_fixed_bytes + LANES * copied_bytes_of_lane - copied_ring_bytes);
  attention my(a, s);
  if (my.lane == 0) {
    for (int i = 0; i < copied_stages; ++i) barrier_init(my.filled(i), 1);
    barrier_init_fence();
  }
  __syncwarp();
  my.run_all();
}

}  // namespace isotope::cuda::gpu
