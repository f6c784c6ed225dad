// y[i] = x[i], or y[i] += x[i], of dense tensors in any floating-point formats, eight elements per thread. Bound by bytes.
#include "update.h"

#include "../rows/vectors.cuh"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(1024) flat_move(const __grid_constant__ flat_operands a) {
  constexpr int n = 8;
  const std::int64_t i = item();
  if (n * i >= a.count) return;
  float x[n];
  load_flat<n>(a.x, i, a.count, a.x_type, a.wide != 0, x);
  if (a.add) {
    float y[n];
    load_flat<n>(a.y, i, a.count, a.y_type, a.wide != 0, y);
#pragma unroll
    for (int k = 0; k < n; ++k) x[k] += y[k];
  }
  store_flat<n>(a.y, i, a.count, a.y_type, a.wide != 0, x);
}

}  // namespace isotope::cuda::gpu
