// architectures: 90a
//
// Attention over cached keys and values as in attention/cached.cuh, for Hopper: the splits of a query are the blocks of a cluster, which exchange their sums
// through shared memory. Bound by reading the caches. The kernel may append the keys and values of its rows to the caches itself.
#include "attention/cached.cuh"
#include "attention/cached_copies.cuh"
#include "device/cluster.cuh"

namespace isotope::cuda::gpu {

/// A row whose sequence no other row of the launch has: only its own position is not in the caches.
struct cached_row_alone {
  std::int64_t n, own;
  __device__ std::int64_t row_of(std::int64_t t) const { return t == own ? n : -1; }
};
/// Rows of one sequence: the last one with a position has its key and value.
struct cached_rows_together {
  const std::int32_t* positions;  // of all rows; -1: of another sequence
  int N;
  __device__ std::int64_t row_of(std::int64_t t) const {
    int m = N - 1;
    while (m >= 0 && positions[m] != t) --m;
    return m;
  }
};

template <int T, int LANES, int QUERIES> __device__ inline void attend_in_cluster(const cached_heads& a) {
  using attention = cached_attention<T, LANES, QUERIES>;
  __shared__ cached_sums<attention::columns, QUERIES> sums;
  __shared__ std::int32_t positions[cached_most_appended];
  start_dependents();
  const cached_place<QUERIES> p(a);
  attention my;
  if (!p.idle) my.prefetch(a, p);
  bool together = false, last = true;  // whether other rows have this sequence, and whether none of them has this place and comes later
  if (a.k != 0 && !p.idle) {
    const int m = int(threadIdx.x);
    bool same = false;
    if (m < a.N) {
      same = pointer<const std::int32_t>(a.sequence)[m] == p.slot;
      positions[m] = same ? pointer<const std::int32_t>(a.position)[m] : -1;
    }
    together = __syncthreads_or(same && m != p.n) != 0;
    if (together)
      for (std::int64_t later = p.n + 1; later < a.N; ++later) last = last && positions[later] != p.own;
  }
  wait_for_dependencies();
  if (!p.idle) {
    my.load_queries(a, p);
    if (a.k == 0) my.attend(a, p, cached_rows_in_cache{});
    else if (!together) my.attend(a, p, cached_row_alone{p.n, p.own});
    else my.attend(a, p, cached_rows_together{positions, int(a.N)});
  }
  if (a.k != 0 && !p.idle && last && p.first_head == 0 && p.split == 0 && my.member < 2 && my.column < a.D) {
    const std::uint64_t to = my.member == 0 ? a.keys : a.values, from = my.member == 0 ? a.k : a.v;
    const std::int64_t stride = my.member == 0 ? a.k_stride : a.v_stride;
    *pointer<uint4>(my.at(to, ((p.slot * a.G + p.g) * a.T + p.own) * a.D + my.column)) =
        *pointer<const uint4>(my.at(from, p.n * stride + std::int64_t(p.g) * a.D + my.column));
  }
  my.combine(sums);
  if (a.splits == 1) {
    __syncthreads();
    return store_results<T>(a, p, sums);
  }
  cluster_sync();
  for (int i = p.split * cached_threads + int(threadIdx.x); i < QUERIES * a.D; i += a.splits * cached_threads) {
    const int r = i / a.D, c = i % a.D;
    if (!p.has(a, r)) continue;
    float total = 0.0f, sum = 0.0f;
    attention::cached_combined(
        a.splits,
        [&](int s) { return cached_top{cluster_load(sums.of[r].top, std::uint32_t(s)), cluster_load(sums.of[r].total, std::uint32_t(s))}; },
        [&](int s) { return cluster_load(sums.sum[r][c], std::uint32_t(s)); }, total, sum);
    put<T>(a.y, p.result(a, r, c), total == 0.0f ? 0.0f : sum / total);
  }
  cluster_sync();
}

extern "C" __global__ void __launch_bounds__(256) attention_cached_hopper_f32_8_1(const __grid_constant__ cached_heads a) {
  attend_in_cluster<f32, 8, 1>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_hopper_f32_8_4(const __grid_constant__ cached_heads a) {
  attend_in_cluster<f32, 8, 4>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_hopper_f32_16_1(const __grid_constant__ cached_heads a) {
  attend_in_cluster<f32, 16, 1>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_hopper_f32_16_4(const __grid_constant__ cached_heads a) {
  attend_in_cluster<f32, 16, 4>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_hopper_f32_32_1(const __grid_constant__ cached_heads a) {
  attend_in_cluster<f32, 32, 1>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_hopper_f32_32_4(const __grid_constant__ cached_heads a) {
  attend_in_cluster<f32, 32, 4>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_hopper_bf16_4_1(const __grid_constant__ cached_heads a) {
  attend_in_cluster<bf16, 4, 1>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_hopper_bf16_4_4(const __grid_constant__ cached_heads a) {
  attend_in_cluster<bf16, 4, 4>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_hopper_bf16_8_1(const __grid_constant__ cached_heads a) {
  attend_in_cluster<bf16, 8, 1>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_hopper_bf16_8_4(const __grid_constant__ cached_heads a) {
  attend_in_cluster<bf16, 8, 4>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_hopper_bf16_16_1(const __grid_constant__ cached_heads a) {
  attend_in_cluster<bf16, 16, 1>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_hopper_bf16_16_4(const __grid_constant__ cached_heads a) {
  attend_in_cluster<bf16, 16, 4>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_hopper_bf16_32_1(const __grid_constant__ cached_heads a) {
  attend_in_cluster<bf16, 32, 1>(a);
}
extern "C" __global__ void __launch_bounds__(256) attention_cached_hopper_bf16_32_4(const __grid_constant__ cached_heads a) {
  attend_in_cluster<bf16, 32, 4>(a);
}
extern "C" __global__ void __launch_bounds__(128, 4) attention_cached_copies_bf16_4_1(const __grid_constant__ cached_heads a) {
  attend_by_copies<bf16, 4>(a);
}
extern "C" __global__ void __launch_bounds__(128, 4) attention_cached_copies_bf16_8_1(const __grid_constant__ cached_heads a) {
  attend_by_copies<bf16, 8>(a);
}
extern "C" __global__ void __launch_bounds__(128, 4) attention_cached_copies_bf16_16_1(const __grid_constant__ cached_heads a) {
  attend_by_copies<bf16, 16>(a);
}
extern "C" __global__ void __launch_bounds__(128, 4) attention_cached_copies_bf16_32_1(const __grid_constant__ cached_heads a) {
  attend_by_copies<bf16, 32>(a);
}

}  // namespace isotope::cuda::gpu
