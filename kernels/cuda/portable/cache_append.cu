// Copies rows of keys and values to their places in the caches, a row per block, in units of 16, 4 or 2 bytes. A row that a later one has the place of is left
// out. Bound by latency: reads the places of all later rows.
#include "cache_append.h"

#include "../device/access.cuh"
#include "../device/early.cuh"

namespace isotope::cuda::gpu {

template <class Unit> __device__ inline void append_row(const cache_append_arguments& a) {
  start_dependents();
  wait_for_dependencies();
  const std::int64_t n = blockIdx.x;
  const std::int32_t *const sequence = pointer<const std::int32_t>(a.sequence), *const position = pointer<const std::int32_t>(a.position);
  const std::int32_t slot = sequence[n], t = position[n];
  if (slot < 0 || slot >= a.B || t < 0 || t >= a.T) return;
  bool later = false;
  for (std::int64_t m = n + 1 + threadIdx.x; m < a.N; m += blockDim.x) later = later || (sequence[m] == slot && position[m] == t);
  if (__syncthreads_or(later) != 0) return;
  for (int c = int(threadIdx.x); c < a.G * a.D; c += int(blockDim.x)) {
    const std::int64_t to = ((std::int64_t(slot) * a.G + c / a.D) * a.T + t) * a.D + c % a.D;
    pointer<Unit>(a.keys)[to] = pointer<const Unit>(a.k)[n * a.k_stride + c];
    pointer<Unit>(a.values)[to] = pointer<const Unit>(a.v)[n * a.v_stride + c];
  }
}

extern "C" __global__ void __launch_bounds__(128) cache_append_16(const __grid_constant__ cache_append_arguments a) {
  append_row<uint4>(a);
}
extern "C" __global__ void __launch_bounds__(128) cache_append_4(const __grid_constant__ cache_append_arguments a) {
  append_row<std::uint32_t>(a);
}
extern "C" __global__ void __launch_bounds__(128) cache_append_2(const __grid_constant__ cache_append_arguments a) {
  append_row<std::uint16_t>(a);
}

}  // namespace isotope::cuda::gpu
