// Accumulation, the global norm and clipping, one element per thread. Bound by bytes. Squares are summed in f64, which neither
// overflows nor loses small terms.
#include "update.h"

#include "../device/access.cuh"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(1024) reference_accumulate(const __grid_constant__ accumulate_arguments a) {
  const std::int64_t i = item();
  if (i >= a.count) return;
  const std::int64_t to = offset_of(i, a.y.axes);
  const float more = load(a.x.at, offset_of(i, a.x.axes), a.x.type);
  store(a.y.at, to, a.y.type, a.add != 0 ? load(a.y.at, to, a.y.type) + more : more);
}

extern "C" __global__ void __launch_bounds__(1024) reference_squares(const __grid_constant__ squares_arguments a) {
  const std::int64_t part = item();
  if (part >= a.parts) return;
  double sum = 0;
  for (std::int64_t t = part; t < a.terms; t += a.parts) {
    if (a.x_type == f64) {
      sum += pointer<const double>(a.x)[t];
    } else {
      const double x = double(load(a.x, t, a.x_type));
      sum += x * x;
    }
  }
  pointer<double>(a.y)[part] = sum;
}

/// sqrt(sum) k, k = gradient_scale.
__device__ inline float norm_of(std::uint64_t squares, std::uint64_t step) {
  return float(sqrt(*pointer<const double>(squares)) * double(pointer<const scalars>(step)->gradient_scale));
}

extern "C" __global__ void __launch_bounds__(1024) reference_global_norm(const __grid_constant__ norm_arguments a) {
  if (item() == 0) *pointer<float>(a.norm) = norm_of(a.squares, a.scalars);
}

/// g[i] = g[i] min(1, c / (norm + 1e-6)) in place.
extern "C" __global__ void __launch_bounds__(1024) reference_clip_norm(const __grid_constant__ clip_arguments a) {
  const std::int64_t i = item();
  const float clip = pointer<const scalars>(a.scalars)->clip_norm;
  if (i >= a.count || !(clip > 0.0f)) return;
  const float factor = clip / (norm_of(a.squares, a.scalars) + 1e-6f);  // NaN for a norm that is NaN
  if (factor < 1.0f) store(a.g, i, a.g_type, load(a.g, i, a.g_type) * factor);
}

/// g[i] = min(max(g[i], -c), c) in place, NaN kept.
extern "C" __global__ void __launch_bounds__(1024) reference_clip_value(const __grid_constant__ clip_arguments a) {
  const std::int64_t i = item();
  const scalars& s = *pointer<const scalars>(a.scalars);
  if (i >= a.count || !(s.clip_value > 0.0f)) return;
  const float c = s.clip_value / s.gradient_scale, x = load(a.g, i, a.g_type);
  if (x < -c) store(a.g, i, a.g_type, -c);
  else if (x > c) store(a.g, i, a.g_type, c);
}

}  // namespace isotope::cuda::gpu
