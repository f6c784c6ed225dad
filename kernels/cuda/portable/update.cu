// The updates of AdamW, SGD and Muon, and clipping: in place over flat regions, four elements per thread. Bound by bytes: 28 per element
// of AdamW, 20 of SGD, 16 of momentum, 12 of Muon, and those of the shadow copy.
#include "update.h"

#include "../device/scalars.h"
#include "../rows/vectors.cuh"

namespace isotope::cuda::gpu {

__device__ inline bool is_finite(float x) { return (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u; }
__device__ inline bool skipped(const update_operands& a) {
  return !is_finite(pointer<const float>(a.norm)[0]) || !is_finite(pointer<const float>(a.loss)[0]);
}
__device__ inline float gradient_factor(const update_operands& a, const scalars& s) {
  if (!a.clips || !(s.clip_norm > 0.0f)) return s.gradient_scale;
  const float ratio = s.clip_norm / (pointer<const float>(a.norm)[0] + 1e-6f);
  return ratio < 1.0f ? s.gradient_scale * ratio : s.gradient_scale;
}
__device__ inline const scalars& scalars_at(std::uint64_t address) { return *pointer<const scalars>(address); }

using four = float[flat_elems];
__device__ inline void take(const update_operands& a, std::uint64_t base, std::int64_t i, int type, four& v) {
  load_flat<flat_elems>(base, i, a.count, type, a.wide != 0, v);
}
__device__ inline void keep(const update_operands& a, std::uint64_t base, std::int64_t i, int type, const four& v) {
  store_flat<flat_elems>(base, i, a.count, type, a.wide != 0, v);
}
__device__ inline void keep_weights(const update_operands& a, std::int64_t i, const four& w) {
  keep(a, a.w, i, a.w_type, w);
  if (a.shadow != 0) keep(a, a.shadow, i, a.shadow_type, w);
}

extern "C" __global__ void __launch_bounds__(1024) adamw(const __grid_constant__ update_operands a) {
  const std::int64_t i = item();
  if (flat_elems * i >= a.count || skipped(a)) return;
  const scalars& s = scalars_at(a.scalars);
  four w, m, v, g;
  take(a, a.w, i, a.w_type, w);
  take(a, a.m, i, f32, m);
  take(a, a.v, i, f32, v);
  take(a, a.g, i, a.g_type, g);
  const float factor = gradient_factor(a, s), rate = s.learning_rate * a.rate, decay = rate * s.weight_decay;
#pragma unroll
  for (int k = 0; k < flat_elems; ++k) {
    const float d = factor * g[k];
    m[k] = s.beta1 * m[k] + s.rest1 * d;
    v[k] = s.beta2 * v[k] + s.rest2 * (d * d);
    const float kept = flat_elems * i + k < a.decaying ? w[k] - decay * w[k] : w[k];
    w[k] = kept - rate * ((m[k] / s.correction1) / (sqrtf(v[k] / s.correction2) + s.epsilon));
  }
  keep(a, a.m, i, f32, m);
  keep(a, a.v, i, f32, v);
  keep_weights(a, i, w);
}

extern "C" __global__ void __launch_bounds__(1024) sgd(const __grid_constant__ update_operands a) {
  const std::int64_t i = item();
  if (flat_elems * i >= a.count || skipped(a)) return;
  const scalars& s = scalars_at(a.scalars);
  four w, m, g;
  take(a, a.w, i, a.w_type, w);
  take(a, a.m, i, f32, m);
  take(a, a.g, i, a.g_type, g);
  const float factor = gradient_factor(a, s), rate = s.learning_rate * a.rate;
#pragma unroll
  for (int k = 0; k < flat_elems; ++k) {
    const float decay = flat_elems * i + k < a.decaying ? s.weight_decay : 0.0f;
    m[k] = s.momentum * m[k] + factor * g[k] + decay * w[k];
    w[k] = w[k] - rate * m[k];
  }
  keep(a, a.m, i, f32, m);
  keep_weights(a, i, w);
}

/// w receives the direction; 0 in a step that is skipped.
extern "C" __global__ void __launch_bounds__(1024) momentum(const __grid_constant__ update_operands a) {
  const std::int64_t i = item();
  if (flat_elems * i >= a.count) return;
  four m = {}, g;
  if (skipped(a)) return keep(a, a.w, i, a.w_type, m);
  const scalars& s = scalars_at(a.scalars);
  take(a, a.m, i, f32, m);
  take(a, a.g, i, a.g_type, g);
  const float factor = gradient_factor(a, s);
#pragma unroll
  for (int k = 0; k < flat_elems; ++k) {
    g[k] *= factor;
    m[k] = s.momentum * m[k] + g[k];
    g[k] = g[k] + s.momentum * m[k];
  }
  keep(a, a.m, i, f32, m);
  keep(a, a.w, i, a.w_type, g);
}

/// g holds the direction.
extern "C" __global__ void __launch_bounds__(1024) muon(const __grid_constant__ update_operands a) {
  const std::int64_t i = item();
  if (flat_elems * i >= a.count || skipped(a)) return;
  const scalars& s = scalars_at(a.scalars);
  four w, x;
  take(a, a.w, i, a.w_type, w);
  take(a, a.g, i, a.g_type, x);
  const float rate = s.learning_rate * a.rate;
#pragma unroll
  for (int k = 0; k < flat_elems; ++k) {
    const float decay = flat_elems * i + k < a.decaying ? rate * s.weight_decay : 0.0f;
    w[k] = w[k] - decay * w[k] - rate * a.size * x[k];
  }
  keep_weights(a, i, w);
}

/// g[i] = g[i] min(1, c / (norm + 1e-6)); reads nothing if nothing is clipped.
extern "C" __global__ void __launch_bounds__(1024) clip_norm(const __grid_constant__ clip_operands a) {
  const std::int64_t i = item();
  const float clip = scalars_at(a.scalars).clip_norm, norm = pointer<const float>(a.norm)[0];
  if (flat_elems * i >= a.count || !(clip > 0.0f) || norm != norm) return;
  const float factor = clip / (norm + 1e-6f);
  if (!(factor < 1.0f)) return;
  four g;
  load_flat<flat_elems>(a.g, i, a.count, a.type, a.wide != 0, g);
#pragma unroll
  for (int k = 0; k < flat_elems; ++k) g[k] *= factor;
  store_flat<flat_elems>(a.g, i, a.count, a.type, a.wide != 0, g);
}

/// g[i] = min(max(g[i], -c), c), NaN kept; reads nothing if nothing is clipped.
extern "C" __global__ void __launch_bounds__(1024) clip_value(const __grid_constant__ clip_operands a) {
  const std::int64_t i = item();
  const float given = scalars_at(a.scalars).clip_value;
  if (flat_elems * i >= a.count || !(given > 0.0f)) return;
  const float clip = given / scalars_at(a.scalars).gradient_scale;
  four g;
  load_flat<flat_elems>(a.g, i, a.count, a.type, a.wide != 0, g);
#pragma unroll
  for (int k = 0; k < flat_elems; ++k) g[k] = g[k] > clip ? clip : g[k] < -clip ? -clip : g[k];
  store_flat<flat_elems>(a.g, i, a.count, a.type, a.wide != 0, g);
}

}  // namespace isotope::cuda::gpu
