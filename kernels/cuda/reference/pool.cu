// One row of each of several packed sequences, a block per sequence. Bound by bytes; with a norm, rows are read twice.
#include "pool.h"

#include "../device/packed_rows.cuh"
#include "block_sum.cuh"
#include "f64.cuh"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(256) reference_pool(const __grid_constant__ pool_arguments a) {
  const std::int64_t b = blockIdx.x, first = start_of(a.starts, b, a.N), last = start_of(a.starts, b + 1, a.N);
  const std::int64_t count = last <= first ? 0 : a.first != 0 ? 1 : last - first;
  const auto pooled = [&](std::int64_t c) {
    double sum = 0;
    for (std::int64_t n = first; n < first + count; ++n) sum += load_f64(a.x, n * a.x_stride + c, a.type);
    return count == 0 ? 0 : sum / double(count);
  };
  double by = 1;
  if (a.normalise != 0) {
    double squares = 0;
    for (std::int64_t c = threadIdx.x; c < a.C; c += block_sum_threads) {
      const double y = pooled(c);
      squares += y * y;
    }
    by = sqrt(block_sum(squares));
    if (by < a.least_norm) by = a.least_norm;
  }
  for (std::int64_t c = threadIdx.x; c < a.C; c += block_sum_threads) store_f64(a.y, b * a.y_stride + c, a.type, pooled(c) / by);
}

}  // namespace isotope::cuda::gpu
