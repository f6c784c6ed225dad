// The updates of adamw and sgd and the first op of muon, in place, one element per thread. Bound by bytes.
#include "optimizer.cuh"

namespace isotope::cuda::gpu {

extern "C" __global__ void __launch_bounds__(1024) reference_adamw(const __grid_constant__ optimizer_arguments a) {
  const std::int64_t i = item();
  if (i >= a.count || skipped(a)) return;
  const scalars& s = scalars_of(a);
  float *const ms = pointer<float>(a.m), *const vs = pointer<float>(a.v);
  const float rate = s.learning_rate * a.rate;
  const float g = gradient_factor(a) * load(a.g, i, a.g_type);
  const float m = s.beta1 * ms[i] + s.rest1 * g;
  const float v = s.beta2 * vs[i] + s.rest2 * (g * g);
  const float moved = decayed(a, i, rate) - rate * ((m / s.correction1) / (sqrtf(v / s.correction2) + s.epsilon));
  ms[i] = m;
  vs[i] = v;
  store_weight(a, i, moved);
}

extern "C" __global__ void __launch_bounds__(1024) reference_sgd(const __grid_constant__ optimizer_arguments a) {
  const std::int64_t i = item();
  if (i >= a.count || skipped(a)) return;
  const scalars& s = scalars_of(a);
  float* const ms = pointer<float>(a.m);
  const float w = load(a.w, i, a.w_type);
  const float pushed = s.momentum * ms[i] + gradient_factor(a) * load(a.g, i, a.g_type);
  const float m = i < a.decaying ? pushed + s.weight_decay * w : pushed;
  ms[i] = m;
  store_weight(a, i, w - s.learning_rate * a.rate * m);
}

/// w holds u.
extern "C" __global__ void __launch_bounds__(1024) reference_momentum(const __grid_constant__ optimizer_arguments a) {
  const std::int64_t i = item();
  if (i >= a.count) return;
  if (skipped(a)) return store(a.w, i, a.w_type, 0.0f);
  const scalars& s = scalars_of(a);
  float* const ms = pointer<float>(a.m);
  const float g = gradient_factor(a) * load(a.g, i, a.g_type);
  const float m = s.momentum * ms[i] + g;
  ms[i] = m;
  store(a.w, i, a.w_type, g + s.momentum * m);
}

}  // namespace isotope::cuda::gpu
