// Fourier transforms by their definition, one element of the result per thread. Bound by flops: N per result.
#include "fft.h"

#include "f64.cuh"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(1024) reference_fft(const __grid_constant__ reference_fft_arguments a) {
  const std::int64_t i = item(), row = i / a.out_row, k = i % a.out_row;
  if (row >= a.rows) return;
  double re = 0, im = 0;
  std::int64_t t = 0;  // n k modulo N
  for (std::int64_t n = 0; n < a.in_row; ++n) {
    const std::int64_t at = row * a.in_row + n;
    double x = load_f64(a.x, a.form == fourier_from_real ? at : 2 * at, a.x_type);
    double y = a.form == fourier_from_real ? 0 : load_f64(a.x, 2 * at + 1, a.x_type);
    if (a.form == fourier_to_real) {
      const bool outer = n == 0 || 2 * n == a.N;
      x *= outer ? a.outer : a.inner;
      y = outer ? 0 : a.inner * y;
    }
    const double* const root = pointer<const double>(a.roots) + 2 * t;
    const double c = root[0], s = -a.direction * root[1];
    re += x * c - y * s;
    im += x * s + y * c;
    t += k;
    if (t >= a.N) t -= a.N;
  }
  if (a.form == fourier_to_real) {
    store_f64(a.y, i, a.y_type, re);
    return;
  }
  const double factor = a.form == fourier_from_real && (k == 0 || 2 * k == a.N) ? a.outer : a.inner;
  store_f64(a.y, 2 * i, a.y_type, factor * re);
  store_f64(a.y, 2 * i + 1, a.y_type, factor * im);
}

}  // namespace isotope::cuda::gpu
