// The k largest elements of each row and their indices, one row per thread: each element is inserted into a descending list if it is
// above the last one. Among equal elements the first comes first.
#include "top_k.h"

#include "../device/access.cuh"

namespace isotope::cuda::gpu {

namespace {

// NaN is above all numbers, -0 equals 0.
__device__ inline bool above(float a, float b) { return b == b && (a != a || a > b); }

}  // namespace

extern "C" __global__ void __launch_bounds__(1024) reference_top_k(const __grid_constant__ reference_top_k_arguments a) {
  const std::int64_t row = item();
  if (row >= a.rows) return;
  const std::int64_t from = row * a.n;
  std::int32_t* const list = pointer<std::int32_t>(a.places) + row * a.k;
  for (std::int64_t i = 0; i < a.n; ++i) {
    const float v = load(a.x, from + i, a.x_type);
    if (i >= a.k && !above(v, load(a.x, from + list[a.k - 1], a.x_type))) continue;
    std::int64_t at = i < a.k ? i : a.k - 1;
    for (; at > 0 && above(v, load(a.x, from + list[at - 1], a.x_type)); --at) list[at] = list[at - 1];
    list[at] = std::int32_t(i);
  }
  for (std::int64_t i = 0; i < a.k; ++i) store(a.values, row * a.k + i, a.values_type, load(a.x, from + list[i], a.x_type));
}

}  // namespace isotope::cuda::gpu
