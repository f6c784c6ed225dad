// Muon's update along the orthogonalised direction, one element per thread, in place. Bound by bytes.
#include "optimizer.cuh"

namespace isotope::cuda::gpu {

// g holds the direction.
extern "C" __global__ void __launch_bounds__(1024) reference_muon(const __grid_constant__ optimizer_arguments a) {
  const std::int64_t i = item();
  if (i >= a.count || skipped(a)) return;
  const float rate = scalars_of(a).learning_rate * a.rate;
  store_weight(a, i, decayed(a, i, rate) - rate * a.size * load(a.g, i, a.g_type));
}

}  // namespace isotope::cuda::gpu
