// y[z, c] = sum over all rows of x[z, row, c]. Bound by bytes. A block takes a strip of `across` vectors of columns and a chunk of rows:
// each thread adds every (threads / across)th row, eight in flight; then shuffles add the threads of a warp and shared memory adds the
// warps. Where a strip has several chunks, the last block to finish adds their sums in order: whichever block that is, the order of the
// terms depends on the shape alone.
#include "column_sum.h"

#include "../rows/teams.cuh"

namespace isotope::cuda::gpu {

__device__ inline void store_column(const column_sum_operands& a, std::int64_t c, float total) {
  if (c >= a.cols) return;
  if (a.terms != 0.0f) total /= a.terms;
  if (a.third != 0 && c >= 2 * a.split) store(a.third, c - 2 * a.split, a.y_type, total);
  else if (a.second != 0 && c >= a.split) store(a.second, c - a.split, a.y_type, total);
  else store(a.y, std::int64_t(blockIdx.z) * a.y_batch + c, a.y_type, total);
}

/// Adds the chunks of a strip, `width` columns from `first` on, if this block is the last one of the strip. Several threads add chunks of
/// the same column. `parts` has an element for each thread.
__device__ inline void add_chunks(const column_sum_operands& a, std::int64_t first, int width, float* parts) {
  __shared__ bool last;
  const int thread = int(threadIdx.x), chunks = int(gridDim.y);
  std::uint32_t* counter = pointer<std::uint32_t>(a.counters) + std::int64_t(blockIdx.z) * gridDim.x + blockIdx.x;
  __syncthreads();
  if (thread == 0) {
    __threadfence();  // the sums of this block, which the barrier has ordered before, are visible before it counts as finished
    last = atomicAdd(counter, 1u) + 1 == gridDim.y;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  const int lines = column_threads / width, line = thread / width, k = thread % width;
  // Volatile: other blocks wrote them in this launch.
  const volatile float* sums = pointer<const volatile float>(a.partial) + std::int64_t(blockIdx.z) * chunks * a.cols + first + k;
  float total = 0.0f;
  if (first + k < a.cols)
#pragma unroll 8
    for (int chunk = line; chunk < chunks; chunk += lines) total += sums[chunk * a.cols];
  parts[thread] = total;
  __syncthreads();
  if (thread == 0) *counter = 0;
  if (thread >= width) return;
  for (int other = 1; other < lines; ++other) total += parts[other * width + thread];
  store_column(a, first + k, total);
}

template <int T, int RUN> __device__ inline void column_sum(const column_sum_operands& a) {
  constexpr int flight = 8;
  __shared__ __align__(16) float parts[column_threads * RUN];
  const int thread = int(threadIdx.x), shift = __ffs(a.across) - 1, across = thread & (a.across - 1), down = thread >> shift;
  const int height = column_threads >> shift, width = a.across * RUN;
  const std::int64_t strip = std::int64_t(blockIdx.x) * width, c = strip + across * RUN;
  const std::int64_t first = blockIdx.y * a.each, limit = first + a.each, end = limit < a.rows ? limit : a.rows;
  const std::int64_t from = std::int64_t(blockIdx.z) * a.x_batch + c;
  float sum[RUN] = {};
  if (c < a.cols)
    for (std::int64_t row = first + down; row < end; row += flight * height) {
      if constexpr (RUN == 1) {
        float v[flight];
#pragma unroll
        for (int f = 0; f < flight; ++f) v[f] = row + f * height < end ? get<T>(a.x, from + (row + f * height) * a.pitch) : 0.0f;
        sum[0] += ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
      } else {
        uint4 v[flight];
#pragma unroll
        for (int f = 0; f < flight; ++f) {
          v[f] = make_uint4(0, 0, 0, 0);
          if (row + f * height < end) v[f] = *pointer<const uint4>(a.x + (from + (row + f * height) * a.pitch) * element_bytes<T>);
        }
#pragma unroll
        for (int f = 0; f < flight; f += 2) {
          float one[RUN], two[RUN];
          unpack<T>(v[f], one);
          unpack<T>(v[f + 1], two);
#pragma unroll
          for (int j = 0; j < RUN; ++j) sum[j] += one[j] + two[j];
        }
      }
    }
  for (int step = 16; step >= a.across; step /= 2)
#pragma unroll
    for (int j = 0; j < RUN; ++j) sum[j] += __shfl_xor_sync(all_lanes, sum[j], step);
  const bool narrow = a.across < 32;
  const int lines = narrow ? column_threads / 32 : height;
  if (!narrow || thread % 32 < a.across)
#pragma unroll
    for (int j = 0; j < RUN; ++j) parts[(narrow ? thread / 32 : down) * width + across * RUN + j] = sum[j];
  __syncthreads();
  for (int k = thread; k < width; k += column_threads) {
    float total = parts[k];
    for (int line = 1; line < lines; ++line) total += parts[line * width + k];
    if (gridDim.y == 1) store_column(a, strip + k, total);
    else if (strip + k < a.cols)
      pointer<float>(a.partial)[(std::int64_t(blockIdx.z) * gridDim.y + blockIdx.y) * a.cols + strip + k] = total;
  }
  if (gridDim.y > 1) add_chunks(a, strip, width, parts);
}
template <int T> __device__ inline void column_sum(const column_sum_operands& a) {
  if (a.wide) column_sum<T, vector_elems<T>>(a);
  else column_sum<T, 1>(a);
}
extern "C" __global__ void __launch_bounds__(512, 2) column_sum_f32(const __grid_constant__ column_sum_operands a) { column_sum<f32>(a); }
extern "C" __global__ void __launch_bounds__(512, 2) column_sum_bf16(const __grid_constant__ column_sum_operands a) { column_sum<bf16>(a); }
extern "C" __global__ void __launch_bounds__(512, 2) column_sum_f16(const __grid_constant__ column_sum_operands a) { column_sum<f16>(a); }

}  // namespace isotope::cuda::gpu
