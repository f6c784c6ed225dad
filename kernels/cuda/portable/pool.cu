// One row of each of several packed sequences, a block per sequence. Teams of threads share its rows, each thread a vector of columns; their sums are added in the
// order of the teams. Bound by bytes.
#include "pool.h"

#include "../device/early.cuh"
#include "../device/packed_rows.cuh"
#include "../rows/vectors.cuh"

namespace isotope::cuda::gpu {

/// The sum over the block in every thread, in a fixed order.
__device__ inline double sum_of_block(double x) {
  __shared__ double parts[pool_threads / 32];
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  double sum = 0;
#pragma unroll
  for (int w = 0; w < pool_threads / 32; ++w) sum += parts[w];
  return sum;
}

/// T: the format; UNIT: elements of a vector, 1 or all in 16 bytes.
template <int T, int UNIT> __device__ inline void pool(const pool_arguments& a) {
  __shared__ float sums[pool_threads * UNIT];
  start_dependents();
  wait_for_dependencies();
  const int vectors = int(a.C) / UNIT, teams = pool_threads / vectors, team = int(threadIdx.x) / vectors, at = int(threadIdx.x) % vectors;
  const std::int64_t b = blockIdx.x, first = start_of(a.starts, b, a.N), last = start_of(a.starts, b + 1, a.N);
  const std::int64_t count = last <= first ? 0 : a.first != 0 ? 1 : last - first;
  float y[UNIT] = {};
  if (team < teams) {
#pragma unroll 4
    for (std::int64_t n = first + team; n < first + count; n += teams) {
      const std::int64_t i = n * a.x_stride + at * UNIT;
      if constexpr (UNIT == 1) {
        y[0] += get<T>(a.x, i);
      } else {
        float x[UNIT];
        unpack<T>(*reinterpret_cast<const uint4*>(a.x + std::uint64_t(i) * element_bytes<T>), x);
#pragma unroll
        for (int k = 0; k < UNIT; ++k) y[k] += x[k];
      }
    }
#pragma unroll
    for (int k = 0; k < UNIT; ++k) sums[k * pool_threads + int(threadIdx.x)] = y[k];
  }
  __syncthreads();
  double squares = 0;  // of numbers up to 1e38
  if (team == 0) {
    const float by = count == 0 ? 0 : 1 / float(count);
#pragma unroll
    for (int k = 0; k < UNIT; ++k) {
      for (int i = 1; i < teams; ++i) y[k] += sums[k * pool_threads + i * vectors + at];
      y[k] = count == 0 ? 0 : y[k] * by;
      squares += double(y[k]) * double(y[k]);
    }
  }
  if (a.normalise != 0) {
    const double norm = sqrt(sum_of_block(squares)), by = norm < a.least_norm ? a.least_norm : norm;
#pragma unroll
    for (int k = 0; k < UNIT; ++k) y[k] = float(y[k] / by);
  }
  if (team != 0) return;
  const std::int64_t i = b * a.y_stride + at * UNIT;
  if constexpr (UNIT == 1) {
    put<T>(a.y, i, y[0]);
  } else {
    *reinterpret_cast<uint4*>(a.y + std::uint64_t(i) * element_bytes<T>) = packed<T>(y);
    if (a.y_host != 0) *reinterpret_cast<uint4*>(a.y_host + std::uint64_t(i) * element_bytes<T>) = packed<T>(y);
  }
}

extern "C" __global__ void __launch_bounds__(512) pool_f32(const __grid_constant__ pool_arguments a) { pool<f32, 1>(a); }
extern "C" __global__ void __launch_bounds__(512) pool_f32_wide(const __grid_constant__ pool_arguments a) { pool<f32, 4>(a); }
extern "C" __global__ void __launch_bounds__(512) pool_bf16(const __grid_constant__ pool_arguments a) { pool<bf16, 1>(a); }
extern "C" __global__ void __launch_bounds__(512) pool_bf16_wide(const __grid_constant__ pool_arguments a) { pool<bf16, 8>(a); }
extern "C" __global__ void __launch_bounds__(512) pool_f16(const __grid_constant__ pool_arguments a) { pool<f16, 1>(a); }
extern "C" __global__ void __launch_bounds__(512) pool_f16_wide(const __grid_constant__ pool_arguments a) { pool<f16, 8>(a); }

}  // namespace isotope::cuda::gpu
