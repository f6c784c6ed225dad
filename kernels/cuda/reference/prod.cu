// Products over any axes, and their gradient. Bound by bytes.
#include "../device/access.cuh"
#include "reduce.h"

namespace isotope::cuda::gpu {

/// A thread has one part of a result and takes every `parts`-th term.
extern "C" __global__ void __launch_bounds__(1024) reference_prod(const __grid_constant__ reduce_arguments a) {
  const std::int64_t i = item();
  if (i >= a.results * a.parts) return;
  const std::int64_t from = offset_of(i % a.results, a.axes, 0, a.outer);
  float total = 1.0f;
  for (std::int64_t t = i / a.results; t < a.terms; t += a.parts)
    total *= load(a.x, from + offset_of(t, a.axes, a.outer, a.axes.rank), a.x_type);
  store(a.y, i, a.y_type, total);
}

/// dy times the product of the elements before an element and of those behind it, one row per thread.
extern "C" __global__ void __launch_bounds__(1024) reference_prod_grad(const __grid_constant__ prod_grad_arguments a) {
  const std::int64_t row = item();
  if (row >= a.rows) return;
  const std::int64_t from = row * a.n;
  float* const before = pointer<float>(a.before);
  float total = 1.0f;
  for (std::int64_t at = from; at < from + a.n; ++at) {
    before[at] = total;
    total *= load(a.x, at, a.x_type);
  }
  const float d = load(a.dy, row, a.dy_type);
  total = 1.0f;
  for (std::int64_t at = from + a.n; at-- > from;) {
    store(a.dx, at, a.dx_type, d * (before[at] * total));
    total *= load(a.x, at, a.x_type);
  }
}

}  // namespace isotope::cuda::gpu
