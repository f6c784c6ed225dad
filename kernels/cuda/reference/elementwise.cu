// A step that is only a fused body, by the interpreter; one element per thread. Bound by bytes, or by the formulas.
#include "reference/elementwise.h"

#include "device/body.cuh"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(1024) reference_elementwise(const __grid_constant__ elementwise_arguments a) {
  const std::int64_t i = item();
  if (i < a.elements) body_run(a.body, i, 0.0f);
}

}  // namespace isotope::cuda::gpu
