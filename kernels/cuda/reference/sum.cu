// Sums over any axes in f64: a thread has one part of a result and takes every `parts`-th term. Bound by bytes. Parts are f64 in
// scratch, results innermost, and the same kernel sums them until one is left.
#include "sum.h"

#include "../device/access.cuh"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(1024) reference_sum(const __grid_constant__ sum_arguments a) {
  const std::int64_t i = item();
  if (i >= a.results * a.parts) return;
  const std::int64_t from = offset_of(i % a.results, a.axes, 0, a.outer);
  double total = 0;
  for (std::int64_t t = i / a.results; t < a.terms; t += a.parts) {
    const std::int64_t at = from + offset_of(t, a.axes, a.outer, a.axes.rank);
    total += a.x_type == f64 ? pointer<const double>(a.x)[at] : double(load(a.x, at, a.x_type));
  }
  if (a.mean != 0) total = a.divisor == 0 ? double(__uint_as_float(0x7fc00000u)) : total / double(a.divisor);
  if (a.y_type == f64) pointer<double>(a.y)[i] = total;
  else store(a.y, i, a.y_type, float(total));
}

}  // namespace isotope::cuda::gpu
