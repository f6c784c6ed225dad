// Matrix product by the definition, one element per thread: bound by reading a and b once per multiplication.
#include "matmul.h"

#include "../device/body.cuh"
#include "f64.cuh"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(1024) reference_matmul(const __grid_constant__ reference_matmul_arguments a) {
  const std::int64_t i = item();
  if (i >= a.count) return;
  const std::int64_t ia = offset_of(i, a.a_at), ib = offset_of(i, a.b_at);
  double sum = 0;
  for (std::int64_t k = 0; k < a.K; ++k) sum += load_f64(a.a, ia + k * a.a_step, a.a_type) * load_f64(a.b, ib + k * a.b_step, a.b_type);
  sum *= a.alpha;
  if (a.plus_c != 0) sum += a.beta * load_f64(a.c, offset_of(i, a.c_at), a.c_type);
  const float product = rounded(float(sum), a.product_type);
  if (a.body.count == 0) store_f64(a.y, i, a.y_type, a.add != 0 ? double(product) + load_f64(a.y, i, a.y_type) : double(product));
  else body_run(a.body, i, product);
}

}  // namespace isotope::cuda::gpu
