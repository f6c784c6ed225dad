#pragma once
// Rows of a tensor are distributed to teams: a team is a warp, or a whole block for long rows. The order of a team's sums depends on its
// size alone.
#include "vectors.cuh"

namespace isotope::cuda::gpu {

inline constexpr unsigned all_lanes = 0xffffffffu;

/// The position of a thread. `size`: threads of a team, 32 or those of the block; `row`: of its team, which goes on with row + teams.
struct team {
  int size, lane;
  std::int64_t row, teams;
  __device__ explicit team(int threads) : size(threads) {
    const bool block = threads == int(blockDim.x);
    lane = block ? int(threadIdx.x) : int(threadIdx.x % 32);
    const std::int64_t in_block = block ? 1 : blockDim.x / 32;
    row = blockIdx.x * in_block + (block ? 0 : threadIdx.x / 32);
    teams = gridDim.x * in_block;
  }
};

struct sum_of_two {
  static constexpr float neutral = 0.0f;
  __device__ float operator()(float a, float b) const { return a + b; }
};
/// Loses NaN.
struct greater_of_two {
  static constexpr float neutral = -3.40282347e38f;
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
/// Combines the numbers of all threads of a warp, for every thread.
template <class F> __device__ inline float over_warp(float x, F f) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x = f(x, __shfl_xor_sync(all_lanes, x, step));
  return x;
}
/// Combines N numbers of all threads of a team, for every thread; whole teams call it.
template <class F, int N> __device__ inline void over_team(float (&x)[N], int size, F f) {
#pragma unroll
  for (int k = 0; k < N; ++k) x[k] = over_warp(x[k], f);
  if (size == 32) return;
  __shared__ float parts[32 * N];
  const int warps = size / 32, lane = int(threadIdx.x % 32), warp = int(threadIdx.x / 32);
  if (lane == 0)
#pragma unroll
    for (int k = 0; k < N; ++k) parts[warp * N + k] = x[k];
  __syncthreads();
  if (warps <= 8) {
#pragma unroll
    for (int k = 0; k < N; ++k) x[k] = parts[k];
    for (int w = 1; w < warps; ++w)
#pragma unroll
      for (int k = 0; k < N; ++k) x[k] = f(x[k], parts[w * N + k]);
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k) x[k] = over_warp(lane < warps ? parts[lane * N + k] : F::neutral, f);
  }
  __syncthreads();
}
/// The same for teams of `size` threads that divide a block and all call it again and again, with `turn` 0 and 1 alternating: one barrier
/// is enough, since the numbers of one turn are overwritten only after the barrier of the next.
template <class F, int N> __device__ inline void over_team_in_turn(float (&x)[N], int size, int turn, F f) {
  __shared__ float parts[2][32 * N];
#pragma unroll
  for (int k = 0; k < N; ++k) x[k] = over_warp(x[k], f);
  if (size == 32) return;
  const int warps = size / 32, lane = int(threadIdx.x % 32), warp = int(threadIdx.x / 32), from = warp / warps * warps;
  if (lane == 0)
#pragma unroll
    for (int k = 0; k < N; ++k) parts[turn][warp * N + k] = x[k];
  __syncthreads();
  if (warps <= 8) {
#pragma unroll
    for (int k = 0; k < N; ++k) x[k] = parts[turn][from * N + k];
    for (int w = 1; w < warps; ++w)
#pragma unroll
      for (int k = 0; k < N; ++k) x[k] = f(x[k], parts[turn][(from + w) * N + k]);
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k) x[k] = over_warp(lane < warps ? parts[turn][(from + lane) * N + k] : F::neutral, f);
  }
}
template <class F> __device__ inline float over_team(float x, int size, F f) {
  float one[1] = {x};
  over_team(one, size, f);
  return one[0];
}

/// The elements of a row that a thread holds: HOLD runs of a part of the row that begins at column `start`. WIDE: rows are whole vectors
/// of 16 bytes, and all addresses are aligned; otherwise adjacent threads take adjacent elements.
template <int T, bool WIDE, int HOLD> struct row_part {
  static constexpr int run = vector_elems<T>;
  int n, size, lane, start = 0;  // n: columns of the row, at most 2^30
  __device__ row_part(int columns, const team& t) : n(columns), size(t.size), lane(t.lane) {}

  __device__ int columns() const { return HOLD * run * size; }
  __device__ int column(int k, int j) const { return start + (WIDE ? (k * size + lane) * run + j : (k * run + j) * size + lane); }
  __device__ bool inside(int k, int j) const { return column(k, WIDE ? 0 : j) < n; }

  /// Run k alone; elements outside the row keep their value.
  template <int F> __device__ void load_some(std::uint64_t row, int k, float (&v)[run]) const {
    if constexpr (WIDE) {
      if (inside(k, 0)) load_run<F, run>(row, column(k, 0), v);
    } else {
#pragma unroll
      for (int j = 0; j < run; ++j)
        if (inside(k, j)) v[j] = get<F>(row, column(k, j));
    }
  }
  __device__ void load_some_as(int type, std::uint64_t row, int k, float (&v)[run]) const {
    if (type == f32) load_some<f32>(row, k, v);
    else if (type == bf16) load_some<bf16>(row, k, v);
    else load_some<f16>(row, k, v);
  }
  __device__ void store_some(std::uint64_t row, int k, const float (&v)[run]) const {
    if constexpr (WIDE) {
      if (inside(k, 0)) store_run<T, run>(row, column(k, 0), v);
    } else {
#pragma unroll
      for (int j = 0; j < run; ++j)
        if (inside(k, j)) put<T>(row, column(k, j), v[j]);
    }
  }
  /// Elements outside the row read as `other`. `begin`: the element at which the row begins.
  template <int F> __device__ void load(std::uint64_t base, std::int64_t begin, float (&v)[HOLD][run], float other) const {
#pragma unroll
    for (int k = 0; k < HOLD; ++k) {
#pragma unroll
      for (int j = 0; j < run; ++j) v[k][j] = other;
      load_some<F>(base + std::uint64_t(begin * element_bytes<F>), k, v[k]);
    }
  }
  __device__ void load(std::uint64_t base, std::int64_t begin, float (&v)[HOLD][run], float other) const { load<T>(base, begin, v, other); }
  /// The same in a format that is known at run time.
  __device__ void load_as(int type, std::uint64_t base, std::int64_t begin, float (&v)[HOLD][run], float other) const {
    if (type == f32) load<f32>(base, begin, v, other);
    else if (type == bf16) load<bf16>(base, begin, v, other);
    else load<f16>(base, begin, v, other);
  }
  __device__ void store(std::uint64_t base, std::int64_t begin, const float (&v)[HOLD][run]) const {
#pragma unroll
    for (int k = 0; k < HOLD; ++k) store_some(base + std::uint64_t(begin * element_bytes<T>), k, v[k]);
  }
};
/// Calls f(k, j) for every element of a part.
template <int HOLD, int RUN, class F> __device__ inline void for_part(const F& f) {
#pragma unroll
  for (int k = 0; k < HOLD; ++k)
#pragma unroll
    for (int j = 0; j < RUN; ++j) f(k, j);
}

}  // namespace isotope::cuda::gpu
