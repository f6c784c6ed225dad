#pragma once
// What adamw, sgd and muon share: the factor on the gradient, whether the step counts, and how a new weight is stored.
#include "../device/access.cuh"
#include "optimizer.h"

namespace isotope::cuda::gpu {

__device__ inline bool is_finite(float x) { return (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u; }
__device__ inline const scalars& scalars_of(const optimizer_arguments& a) { return *pointer<const scalars>(a.scalars); }
__device__ inline bool skipped(const optimizer_arguments& a) {
  return !is_finite(*pointer<const float>(a.norm)) || !is_finite(*pointer<const float>(a.loss));
}
__device__ inline float gradient_factor(const optimizer_arguments& a) {
  const float scale = scalars_of(a).gradient_scale, clip = scalars_of(a).clip_norm;
  if (a.clips == 0 || !(clip > 0.0f)) return scale;
  const float ratio = clip / (*pointer<const float>(a.norm) + 1e-6f);
  return ratio < 1.0f ? scale * ratio : scale;
}
/// w[i] after weight decay.
__device__ inline float decayed(const optimizer_arguments& a, std::int64_t i, float rate) {
  const float w = load(a.w, i, a.w_type);
  return i < a.decaying ? w - rate * scalars_of(a).weight_decay * w : w;
}
__device__ inline void store_weight(const optimizer_arguments& a, std::int64_t i, float moved) {
  store(a.w, i, a.w_type, moved);
  if (a.shadow_type >= 0) store(a.shadow, i, a.shadow_type, moved);
}

}  // namespace isotope::cuda::gpu
