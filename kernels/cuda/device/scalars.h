#pragma once
// The scalars of a step as kernels read them; included by host and device code.
#include <cstdint>

namespace isotope::cuda::gpu {

/// step_scalars, followed by values that are derived from them with the host's f64 arithmetic.
struct scalars {
  std::uint64_t seed, counter;
  std::int64_t optimizer_step;
  float learning_rate;
  double beta1_in_f64, beta2_in_f64;
  float epsilon, weight_decay, momentum, clip_norm, clip_value, gradient_scale;
  std::int32_t sizes[16];
  float beta1, beta2, rest1, rest2;  // rest = 1 - beta
  float correction1, correction2;    // 1 - beta^t
};

}  // namespace isotope::cuda::gpu
