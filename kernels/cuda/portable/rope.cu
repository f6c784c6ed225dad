// Rotary position embedding, four pairs per thread, or one if heads are no whole vectors; both halves are read before either is written.
// Bound by bytes.
#include "rope.h"

#include "../rows/vectors.cuh"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(1024) rope(const __grid_constant__ rope_operands a) {
  const std::int64_t i = item();
  if (i >= a.count) return;
  const std::int64_t head = i / a.groups, d = i % a.groups, s = head / a.H % a.S;
  const std::int64_t low = 2 * head * a.groups + d, turn = s * a.groups + d;
  if (!a.wide) {
    const float cosine = pointer<const float>(a.table)[2 * turn], sine = pointer<const float>(a.table)[2 * turn + 1];
    const float p = load(a.x, low, a.type), q = load(a.x, low + a.groups, a.type);
    store(a.y, low, a.type, p * cosine - q * sine);
    store(a.y, low + a.groups, a.type, q * cosine + p * sine);
    return;
  }
  float t[8], p[4], q[4], first[4], second[4];
  load_run<f32, 8>(a.table, 8 * turn, t);
  load_run<4>(a.x, 4 * low, a.type, p);
  load_run<4>(a.x, 4 * (low + a.groups), a.type, q);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    first[k] = p[k] * t[2 * k] - q[k] * t[2 * k + 1];
    second[k] = q[k] * t[2 * k] + p[k] * t[2 * k + 1];
  }
  store_run<4>(a.y, 4 * low, a.type, first);
  store_run<4>(a.y, 4 * (low + a.groups), a.type, second);
}

}  // namespace isotope::cuda::gpu
