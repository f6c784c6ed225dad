#pragma once
// The sum of one value per thread of a block, in f64 and in a fixed order.
#include "../device/access.cuh"

namespace isotope::cuda::gpu {

inline constexpr int block_sum_threads = 256;

/// Returns the sum over the block in every thread. The block has block_sum_threads threads.
__device__ inline double block_sum(double x) {
  __shared__ double sums[block_sum_threads];
  const int thread = int(threadIdx.x);
  __syncthreads();
  sums[thread] = x;
  __syncthreads();
  for (int half = block_sum_threads / 2; half > 0; half /= 2) {
    if (thread < half) sums[thread] += sums[thread + half];
    __syncthreads();
  }
  return sums[0];
}

}  // namespace isotope::cuda::gpu
