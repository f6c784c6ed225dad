// Running sums along one axis in f64: one row per thread. An element is read before its place is written, so in place is safe.
#include "cumsum.h"

#include "../device/access.cuh"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(1024) reference_cumsum(const __grid_constant__ cumsum_arguments a) {
  const std::int64_t row = item();
  if (row >= a.rows) return;
  const std::int64_t from = row / a.inner * a.n * a.inner + row % a.inner;
  double sum = 0;
  for (std::int64_t k = 0; k < a.n; ++k) {
    const std::int64_t at = from + (a.reverse != 0 ? a.n - 1 - k : k) * a.inner;
    sum += double(load(a.x, at, a.x_type));
    store(a.y, at, a.y_type, float(sum));
  }
}

}  // namespace isotope::cuda::gpu
