// Counter-based dropout, one element per thread. Bound by the integer multiplications of Philox.
#include "dropout.h"

#include "f64.cuh"
#include "philox.cuh"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(1024) reference_dropout(const __grid_constant__ reference_dropout_arguments a) {
  const std::int64_t i = item();
  if (i >= a.count) return;
  const std::uint64_t word =
      random_word(*pointer<const scalars>(a.scalars), std::uint64_t(a.first + i / a.run * a.stride + i % a.run), a.stream);
  store_f64(a.y, i, a.y_type, word >= a.least ? load_f64(a.x, i, a.x_type) / a.kept : 0);
}

}  // namespace isotope::cuda::gpu
