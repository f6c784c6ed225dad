// Copies rows of keys and values to their places in the caches, an element of a row of both per thread. A row that a later one has the place of is left out.
// Bound by reading the places, N^2 G D / 2 times.
#include "cache_append.h"

#include "../device/access.cuh"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(1024) reference_cache_append(const __grid_constant__ reference_cache_append_arguments a) {
  const std::int64_t i = item(), width = a.G * a.D;
  if (i >= a.N * width) return;
  const std::int32_t *const sequence = pointer<const std::int32_t>(a.sequence), *const position = pointer<const std::int32_t>(a.position);
  const std::int64_t n = i / width, c = i % width, slot = sequence[n], t = position[n];
  if (slot < 0 || slot >= a.B || t < 0 || t >= a.T) return;
  for (std::int64_t later = n + 1; later < a.N; ++later)
    if (sequence[later] == slot && position[later] == t) return;
  const std::int64_t to = ((slot * a.G + c / a.D) * a.T + t) * a.D + c % a.D;
  store(a.keys, to, a.type, load(a.k, n * a.k_stride + c, a.type));
  store(a.values, to, a.type, load(a.v, n * a.v_stride + c, a.type));
}

}  // namespace isotope::cuda::gpu
