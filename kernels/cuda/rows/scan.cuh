#pragma once
// Running sums and products along rows: a team takes a stretch of a row at a time, each thread a run of adjacent elements of it.
#include "teams.cuh"

namespace isotope::cuda::gpu {

/// The combination of what the threads of the team before this one hold; `all` is that of the whole team. Whole teams call it.
template <class F> __device__ inline float before_in_team(float term, float& all, int size, F f) {
  const int lane = int(threadIdx.x % 32), warp = int(threadIdx.x / 32);
  float through = term;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const float other = __shfl_up_sync(all_lanes, through, step);
    if (lane >= step) through = f(other, through);
  }
  const float neighbour = __shfl_up_sync(all_lanes, through, 1);
  float before = lane == 0 ? F::neutral : neighbour;
  all = __shfl_sync(all_lanes, through, 31);
  if (size == 32) return before;
  __shared__ float parts[32];
  if (lane == 0) parts[warp] = all;
  __syncthreads();
  float earlier = F::neutral;
  all = F::neutral;
  for (int w = 0; w < size / 32; ++w) {
    if (w == warp) earlier = all;
    all = f(all, parts[w]);
  }
  __syncthreads();
  return f(earlier, before);
}

/// A run of a row of n elements: those at p, p + 1, ... counted from the row's first element, or from its last if BACK. WIDE: n and p are
/// multiples of the run.
template <int T, bool WIDE, bool BACK, int RUN>
__device__ inline void load_stretch(std::uint64_t base, std::int64_t begin, std::int64_t p, std::int64_t n, float other, float (&v)[RUN]) {
#pragma unroll
  for (int j = 0; j < RUN; ++j) v[j] = other;
  if constexpr (WIDE) {
    if (p >= n) return;
    float some[RUN];
    load_run<T, RUN>(base, begin + (BACK ? n - p - RUN : p), some);
#pragma unroll
    for (int j = 0; j < RUN; ++j) v[j] = some[BACK ? RUN - 1 - j : j];
  } else {
#pragma unroll
    for (int j = 0; j < RUN; ++j)
      if (p + j < n) v[j] = get<T>(base, begin + (BACK ? n - 1 - p - j : p + j));
  }
}
template <int T, bool WIDE, bool BACK, int RUN>
__device__ inline void store_stretch(std::uint64_t base, std::int64_t begin, std::int64_t p, std::int64_t n, const float (&v)[RUN]) {
  if constexpr (WIDE) {
    if (p >= n) return;
    float some[RUN];
#pragma unroll
    for (int j = 0; j < RUN; ++j) some[BACK ? RUN - 1 - j : j] = v[j];
    store_run<T, RUN>(base, begin + (BACK ? n - p - RUN : p), some);
  } else {
#pragma unroll
    for (int j = 0; j < RUN; ++j)
      if (p + j < n) put<T>(base, begin + (BACK ? n - 1 - p - j : p + j), v[j]);
  }
}

}  // namespace isotope::cuda::gpu
