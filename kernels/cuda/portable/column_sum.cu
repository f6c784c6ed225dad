// y[z, chunk, c] = sum over the rows of a chunk of x[z, row, c]. Bound by bytes. A block takes `across` vectors of columns and a chunk of
// rows: each thread adds every (threads / across)th row, four in flight, and then a tree adds the threads. Few columns of many rows take
// two passes, first in chunks, then all chunks at once: the order of the terms depends on the shape alone.
#include "column_sum.h"

#include "../rows/vectors.cuh"

namespace isotope::cuda::gpu {

template <int T, int RUN> __device__ inline void column_sum(const column_sum_operands& a) {
  constexpr int flight = 4;
  __shared__ float parts[column_threads * RUN];
  const int thread = int(threadIdx.x), across = thread % a.across, down = thread / a.across, height = column_threads / a.across;
  const std::int64_t c = (std::int64_t(blockIdx.x) * a.across + across) * RUN, chunk = blockIdx.y;
  const std::int64_t first = chunk * a.each, limit = first + a.each, end = limit < a.rows ? limit : a.rows;
  const std::int64_t from = std::int64_t(blockIdx.z) * a.x_batch + c;
  float sum[RUN] = {};
  const auto take = [&](std::int64_t row, float(&v)[RUN]) {
    if constexpr (RUN == 1) v[0] = get<T>(a.x, from + row * a.pitch);
    else load_run<T, RUN>(a.x, from + row * a.pitch, v);
  };
  if (c < a.cols) {
    std::int64_t row = first + down;
    for (; row + (flight - 1) * height < end; row += flight * height) {
      float v[flight][RUN];
#pragma unroll
      for (int f = 0; f < flight; ++f) take(row + f * height, v[f]);
#pragma unroll
      for (int j = 0; j < RUN; ++j) sum[j] += (v[0][j] + v[1][j]) + (v[2][j] + v[3][j]);
    }
    for (; row < end; row += height) {
      float v[RUN];
      take(row, v);
#pragma unroll
      for (int j = 0; j < RUN; ++j) sum[j] += v[j];
    }
  }
#pragma unroll
  for (int j = 0; j < RUN; ++j) parts[j * column_threads + thread] = sum[j];
  __syncthreads();
  for (int half = height / 2; half > 0; half /= 2) {
    if (down < half)
#pragma unroll
      for (int j = 0; j < RUN; ++j) parts[j * column_threads + thread] += parts[j * column_threads + thread + half * a.across];
    __syncthreads();
  }
  if (down != 0 || c >= a.cols) return;
  const std::int64_t to = std::int64_t(blockIdx.z) * a.y_batch + chunk * a.cols + c;
#pragma unroll
  for (int j = 0; j < RUN; ++j) {
    float total = parts[j * column_threads + thread];
    if (a.terms != 0.0f) total /= a.terms;
    if (a.second != 0 && c + j >= a.split) store(a.second, c + j - a.split, a.y_type, total);
    else store(a.y, to + j, a.y_type, total);
  }
}
template <int T> __device__ inline void column_sum(const column_sum_operands& a) {
  if (a.wide) column_sum<T, vector_elems<T>>(a);
  else column_sum<T, 1>(a);
}
extern "C" __global__ void __launch_bounds__(256) column_sum_f32(const __grid_constant__ column_sum_operands a) { column_sum<f32>(a); }
extern "C" __global__ void __launch_bounds__(256) column_sum_bf16(const __grid_constant__ column_sum_operands a) { column_sum<bf16>(a); }
extern "C" __global__ void __launch_bounds__(256) column_sum_f16(const __grid_constant__ column_sum_operands a) { column_sum<f16>(a); }

}  // namespace isotope::cuda::gpu
