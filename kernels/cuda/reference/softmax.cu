// Softmax and its logarithm along one axis, and their gradients, one row per thread. Each element is read before it is written, so in
// place is safe. Bound by bytes. A row with NaN or +infinity, or of only -infinity, gives NaN.
#include "softmax.h"

#include "f64.cuh"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(1024) reference_softmax(const __grid_constant__ reference_softmax_arguments a) {
  const std::int64_t row = item();
  if (row >= a.rows) return;
  const std::int64_t from = row / a.inner * a.n * a.inner + row % a.inner;
  double top = -infinity_f64(), total = 0;
  for (std::int64_t j = 0; j < a.n; ++j) {
    const double x = load_f64(a.x, from + j * a.inner, a.x_type);
    if (x > top) top = x;
  }
  for (std::int64_t j = 0; j < a.n; ++j) total += exp(load_f64(a.x, from + j * a.inner, a.x_type) - top);
  const double log_total = log(total);
  for (std::int64_t j = 0; j < a.n; ++j) {
    const double x = load_f64(a.x, from + j * a.inner, a.x_type);
    store_f64(a.y, from + j * a.inner, a.y_type, a.log != 0 ? x - top - log_total : exp(x - top) / total);
  }
}

extern "C" __global__ void __launch_bounds__(1024) reference_softmax_grad(const __grid_constant__ reference_softmax_grad_arguments a) {
  const std::int64_t row = item();
  if (row >= a.rows) return;
  const std::int64_t from = row / a.inner * a.n * a.inner + row % a.inner;
  double sum = 0;
  for (std::int64_t j = 0; j < a.n; ++j) {
    const double d = load_f64(a.dy, from + j * a.inner, a.dy_type);
    sum += a.log != 0 ? d : load_f64(a.y, from + j * a.inner, a.y_type) * d;
  }
  for (std::int64_t j = 0; j < a.n; ++j) {
    const std::int64_t at = from + j * a.inner;
    const double p = load_f64(a.y, at, a.y_type), d = load_f64(a.dy, at, a.dy_type);
    store_f64(a.dx, at, a.dx_type, a.log != 0 ? d - exp(p) * sum : p * (d - sum));
  }
}

}  // namespace isotope::cuda::gpu
