// Looks up rows of a table by id, one unit of bytes per thread, and adds rows to a gradient: into[id] += dy[position] over pairs (id,
// position) sorted by id, then position. The rows of one id are added one after another, so that the sum has the bits of a loop. Bound by
// bytes, and for frequent ids by the latency of a long sum: in runs longer than id_long_run all threads of a block fetch rows of a strip
// of columns into a tile while 32 of them add the previous tile.
#include "embedding.h"

#include "../rows/vectors.cuh"

namespace isotope::cuda::gpu {

template <class U> __device__ inline U repeated(std::uint32_t bits) { return U(bits); }
template <> __device__ inline uint2 repeated<uint2>(std::uint32_t bits) { return make_uint2(bits, bits); }
template <> __device__ inline uint4 repeated<uint4>(std::uint32_t bits) { return make_uint4(bits, bits, bits, bits); }
template <class U> __device__ inline void look_up(const embedding_operands& a) {
  const std::int64_t i = item();
  if (i >= a.units) return;
  const bool small = a.units >> 32 == 0;
  const std::int64_t row = small ? std::uint32_t(i) / std::uint32_t(a.per_row) : i / a.per_row;
  const std::uint32_t id = pointer<const std::uint32_t>(a.ids)[row];
  pointer<U>(a.y)[i] = id < a.V ? pointer<const U>(a.table)[id * std::int64_t(a.per_row) + (i - row * a.per_row)] : repeated<U>(a.no_row);
}
extern "C" __global__ void __launch_bounds__(1024) embedding(const __grid_constant__ embedding_operands a) {
  if (a.unit == 16) look_up<uint4>(a);
  else if (a.unit == 8) look_up<uint2>(a);
  else if (a.unit == 4) look_up<std::uint32_t>(a);
  else look_up<std::uint16_t>(a);
}

inline constexpr std::uint32_t no_id = 0xffffffffu;
__device__ inline uint2 pair_at(const embedding_grad_operands& a, std::int64_t i) {
  return i < a.n ? pointer<const uint2>(a.pairs)[i] : make_uint2(no_id, 0);
}
template <int T>
__device__ inline void row_block(const embedding_grad_operands& a, std::uint64_t base, std::int64_t row, std::int64_t b, float (&v)[4]) {
  if (a.wide) return load_run<T, 4>(base, row * a.C + 4 * b, v);
#pragma unroll
  for (int j = 0; j < 4; ++j) v[j] = 4 * b + j < a.C ? get<T>(base, row * a.C + 4 * b + j) : 0.0f;
}
__device__ inline void store_block(const embedding_grad_operands& a, std::int64_t row, std::int64_t b, const float (&v)[4]) {
  if (a.wide) return store_run<f32, 4>(a.into, row * a.C + 4 * b, v);
#pragma unroll
  for (int j = 0; j < 4; ++j)
    if (4 * b + j < a.C) pointer<float>(a.into)[row * a.C + 4 * b + j] = v[j];
}

template <int T> __device__ inline void short_runs(const embedding_grad_operands& a, std::int64_t window, std::int64_t b) {
  constexpr int flight = 8, flight_behind = 16, near_pairs = id_window + id_long_run + 2;
  __shared__ uint2 near[near_pairs];  // from the pair before the window to the one behind the longest short run that starts in it
  const std::int64_t start = window * id_window;
  const bool there = 4 * b < a.C;
  for (int k = int(threadIdx.x); k < near_pairs; k += int(blockDim.x))
    near[k] = start + k > 0 ? pair_at(a, start + k - 1) : make_uint2(no_id, 0);
  __syncthreads();
  float sum[4] = {};
  bool mine = false;  // whether the last run is short and started in this window: it may continue behind it
  for (int k = 0; k < id_window; k += flight) {
    float g[flight][4], old[flight][4];
    bool taken[flight];
#pragma unroll
    for (int j = 0; j < flight; ++j) {
      const uint2 pair = near[k + j + 1];
      const bool begins = near[k + j].x != pair.x;
      if (begins) mine = pair.x < a.V && near[k + j + id_long_run + 1].x != pair.x;
      taken[j] = mine && there;
      if (taken[j]) row_block<T>(a, a.dy, pair.y, b, g[j]);
      if (taken[j] && begins) row_block<f32>(a, a.into, pair.x, b, old[j]);
    }
#pragma unroll
    for (int j = 0; j < flight; ++j) {
      if (!taken[j]) continue;
      const std::uint32_t id = near[k + j + 1].x;
      const bool begins = near[k + j].x != id;
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[e] = (begins ? old[j][e] : sum[e]) + g[j][e];
      if (near[k + j + 2].x != id) store_block(a, id, b, sum);
    }
  }
  for (int k = id_window; k < id_window + id_long_run && mine; k += flight_behind) {
    const std::uint32_t id = near[k].x;
    float g[flight_behind][4];
    bool taken[flight_behind];
#pragma unroll
    for (int j = 0; j < flight_behind; ++j) {
      mine = mine && near[k + j + 1].x == id;
      taken[j] = mine && there;
      if (taken[j]) row_block<T>(a, a.dy, near[k + j + 1].y, b, g[j]);
    }
#pragma unroll
    for (int j = 0; j < flight_behind; ++j) {
      if (!taken[j]) continue;
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[e] += g[j][e];
      if (near[k + j + 2].x != id) store_block(a, id, b, sum);
    }
  }
}

inline constexpr int tile_threads = 256, tile_down = tile_threads / 8, tile_air = 4, tile_rows = tile_air * tile_down;
using strip_tile = float[tile_rows * id_strip];

/// Adds the rows of a tile to a column, one after another; those of the next batch come from shared memory meanwhile.
__device__ inline float add_column(const float* column, float sum) {
  constexpr int batch = 16;
  float now[batch], ahead[batch];
#pragma unroll
  for (int k = 0; k < batch; ++k) now[k] = column[k * id_strip];
#pragma unroll
  for (int row = batch; row <= tile_rows; row += batch) {
#pragma unroll
    for (int k = 0; k < batch; ++k) ahead[k] = row < tile_rows ? column[(row + k) * id_strip] : 0.0f;
#pragma unroll
    for (int k = 0; k < batch; ++k) sum += now[k];
#pragma unroll
    for (int k = 0; k < batch; ++k) now[k] = ahead[k];
  }
  return sum;
}

/// Two tiles in turn, so that one barrier for each is enough: a tile is overwritten after the barrier of the other one. Rows behind the run
/// are -0, which changes no sum. over[turn]: whether the run ends in the tile.
template <int T>
__device__ inline void add_long_run(const embedding_grad_operands& a, std::int64_t first, std::int64_t strip, strip_tile (&tiles)[2],
                                    bool (&over)[2]) {
  const int lane = int(threadIdx.x), across = lane % 8, down = lane / 8;
  const std::int64_t b = strip * 8 + across, c = strip * id_strip + lane;
  const std::uint32_t id = pair_at(a, first).x;
  float g[tile_air][4];
  uint2 pair[tile_air], next[tile_air];
  const auto fetch = [&](uint2 from, float(&row)[4]) {
#pragma unroll
    for (int j = 0; j < 4; ++j) row[j] = -0.0f;
    if (from.x == id && 4 * b < a.C) row_block<T>(a, a.dy, from.y, b, row);
  };
#pragma unroll
  for (int q = 0; q < tile_air; ++q) {
    pair[q] = pair_at(a, first + q * tile_down + down);
    next[q] = pair_at(a, first + tile_rows + q * tile_down + down);
    fetch(pair[q], g[q]);
  }
  const bool adds = lane < id_strip && c < a.C;
  float sum = adds ? pointer<const float>(a.into)[id * a.C + c] : 0.0f;
  if (lane < 2) over[lane] = false;
  __syncthreads();
  int turn = 0;
  for (std::int64_t from = first;; from += tile_rows, turn ^= 1) {
#pragma unroll
    for (int q = 0; q < tile_air; ++q) {
      if (pair[q].x != id) over[turn] = true;
#pragma unroll
      for (int j = 0; j < 4; ++j) tiles[turn][(q * tile_down + down) * id_strip + 4 * across + j] = g[q][j];
    }
    __syncthreads();
    const bool ends = over[turn];
    if (!ends) {
#pragma unroll
      for (int q = 0; q < tile_air; ++q) {
        pair[q] = next[q];
        fetch(pair[q], g[q]);
        next[q] = pair_at(a, from + 2 * tile_rows + q * tile_down + down);
      }
    }
    if (lane < id_strip) sum = add_column(tiles[turn] + lane, sum);
    if (ends) break;
  }
  if (adds) pointer<float>(a.into)[id * a.C + c] = sum;
  __syncthreads();
}

template <int T> __device__ inline void long_runs(const embedding_grad_operands& a, std::int64_t search, std::int64_t strip) {
  __shared__ __align__(16) strip_tile tiles[2];
  __shared__ std::uint32_t runs[id_search / id_long_run], found;
  __shared__ bool over[2];
  const int lane = int(threadIdx.x);
  if (lane == 0) found = 0;
  __syncthreads();
  for (int k = lane; k < id_search; k += int(blockDim.x)) {
    const std::int64_t i = search * id_search + k;
    if (i >= a.n) break;
    const std::uint32_t id = pair_at(a, i).x;
    if (id < a.V && pair_at(a, i + id_long_run).x == id && (i == 0 || pair_at(a, i - 1).x != id))
      runs[atomicAdd(&found, 1u)] = std::uint32_t(k);
  }
  __syncthreads();
  const std::uint32_t all = found;
  for (std::uint32_t r = 0; r < all; ++r)
    add_long_run<T>(a, search * id_search + runs[r], strip, tiles, over);  // runs of different ids may come in any order
}

template <int T> __device__ inline void embedding_grad(const embedding_grad_operands& a) {
  const std::int64_t block = blockIdx.x;
  if (block < a.searches) {
    const std::int64_t strips = (a.C + id_strip - 1) / id_strip;
    long_runs<T>(a, block / strips, block % strips);
  } else {
    const std::int64_t chunks = (a.C + 4 * tile_threads - 1) / (4 * tile_threads), window = (block - a.searches) / chunks;
    short_runs<T>(a, window, (block - a.searches) % chunks * tile_threads + threadIdx.x);
  }
}
extern "C" __global__ void __launch_bounds__(256) embedding_grad_f32(const __grid_constant__ embedding_grad_operands a) {
  embedding_grad<f32>(a);
}
extern "C" __global__ void __launch_bounds__(256) embedding_grad_bf16(const __grid_constant__ embedding_grad_operands a) {
  embedding_grad<bf16>(a);
}
extern "C" __global__ void __launch_bounds__(256) embedding_grad_f16(const __grid_constant__ embedding_grad_operands a) {
  embedding_grad<f16>(a);
}

}  // namespace isotope::cuda::gpu
