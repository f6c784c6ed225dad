// Takes elements of rows by index, and adds to them.
#include "take_along.h"

#include "f64.cuh"

namespace isotope::cuda::gpu {

// One element of the result per thread. Bound by bytes.
extern "C" __global__ void __launch_bounds__(1024) reference_take_along(const __grid_constant__ reference_take_along_arguments a) {
  const std::int64_t i = item();
  if (i >= a.rows * a.K) return;
  const std::int64_t from = pointer<const std::int32_t>(a.index)[i];
  store(a.y, i, a.type, from >= 0 && from < a.N ? load(a.x, i / a.K * a.N + from, a.type) : a.outside);
}

// One element of the result per thread, which adds the updates of its index in ascending order. Bound by reading the indices, N times.
extern "C" __global__ void __launch_bounds__(1024) reference_scatter_add(const __grid_constant__ reference_scatter_add_arguments a) {
  const std::int64_t i = item();
  if (i >= a.rows * a.N) return;
  const std::int32_t* const index = pointer<const std::int32_t>(a.index);
  const std::int64_t row = i / a.N, n = i % a.N;
  float sum = load(a.x, i, a.type);
  for (std::int64_t k = row * a.K; k < (row + 1) * a.K; ++k)
    if (index[k] == n) sum += load(a.updates, k, a.updates_type);
  store(a.y, i, a.type, sum);
}

}  // namespace isotope::cuda::gpu
