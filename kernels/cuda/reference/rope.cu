// Rotary position embedding, one pair of elements per thread; both are read before either is written. Bound by bytes.
#include "rope.h"

#include "f64.cuh"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(1024) reference_rope(const __grid_constant__ reference_rope_arguments g) {
  const std::int64_t i = item();
  if (i >= g.count) return;
  const std::int64_t d = i % g.pairs, head = i / g.pairs, s = head / g.H % g.S;
  const std::int64_t at = head * 2 * g.pairs + d;
  const double a = load_f64(g.x, at, g.x_type), b = load_f64(g.x, at + g.pairs, g.x_type);
  if (head % g.H >= g.rotated) {
    store_f64(g.y, at, g.y_type, a);
    store_f64(g.y, at + g.pairs, g.y_type, b);
    return;
  }
  double cosine, sine;
  if (g.positions != 0) {
    const double t = double(pointer<const std::int32_t>(g.positions)[s]) * pointer<const double>(g.table)[d];
    cosine = cos(t);
    sine = g.direction * sin(t);
  } else {
    const double* const rotation = pointer<const double>(g.table) + 2 * (s * g.pairs + d);
    cosine = rotation[0];
    sine = rotation[1];
  }
  store_f64(g.y, at, g.y_type, a * cosine - b * sine);
  store_f64(g.y, at + g.pairs, g.y_type, b * cosine + a * sine);
}

}  // namespace isotope::cuda::gpu
