#pragma once
// Compares the numbers of a row as words of the same order.
#include "teams.cuh"

namespace isotope::cuda::gpu {

/// A word above zero that grows with the number, or falls if `least`; NaN is the largest. -0 is below 0, or equal to it if `one_zero`.
__device__ inline std::uint32_t order_of(float v, bool least, bool one_zero) {
  const std::uint32_t u = __float_as_uint(v), a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return 0xffffffffu;
  const bool below = u > 0x7fffffffu && !(one_zero && a == 0);
  const std::uint32_t up = below ? 0x7fffffffu - a : 0x80000000u + a;
  return least ? 0u - up : up;
}
__device__ inline float number_of(std::uint32_t w, bool least) {
  if (w == 0xffffffffu) return __uint_as_float(0x7fc00000u);
  const std::uint32_t up = least ? 0u - w : w;
  return up < 0x80000000u ? __uint_as_float(0x80000000u | (0x7fffffffu - up)) : __uint_as_float(up - 0x80000000u);
}
/// The largest key of all threads of a team.
__device__ inline std::uint64_t greatest(std::uint64_t key, int size) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    const std::uint32_t high = __shfl_xor_sync(all_lanes, std::uint32_t(key >> 32), step);
    const std::uint32_t low = __shfl_xor_sync(all_lanes, std::uint32_t(key), step);
    const std::uint64_t other = std::uint64_t(high) << 32 | low;
    key = other > key ? other : key;
  }
  if (size == 32) return key;
  __shared__ std::uint64_t keys[32];
  if (threadIdx.x % 32 == 0) keys[threadIdx.x / 32] = key;
  __syncthreads();
  for (int w = 0; w < size / 32; ++w) key = keys[w] > key ? keys[w] : key;
  __syncthreads();
  return key;
}

}  // namespace isotope::cuda::gpu
