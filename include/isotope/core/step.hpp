#pragma once
/// The scalars that a step reads besides tensors, and the report that it returns.
#include <array>
#include <cstdint>

namespace isotope {

/// The caller sets these before each step.
struct step_scalars {
  std::uint64_t seed = 0;           // Philox key
  std::uint64_t counter = 0;        // Philox step: optimiser step x micro-batches + micro-batch
  std::int64_t optimizer_step = 1;  // t of the bias correction: 1 for the first update; 0: the session counts steps itself
  float learning_rate = 1e-3f;
  double beta1 = 0.9, beta2 = 0.999;  // f64, because 1 - beta2 has a relative error of 1.3e-5 if 0.999 is rounded to f32
  float epsilon = 1e-8f;
  float weight_decay = 0;
  float momentum = 0;
  float clip_norm = 0;                   // <= 0: no clipping
  float clip_value = 0;                  // <= 0: no clipping
  float gradient_scale = 1;              // 1 / micro-batches
  std::array<std::int32_t, 16> sizes{};  // actual sizes of scalar dimensions, by slot
  friend bool operator==(const step_scalars&, const step_scalars&) = default;
};

struct step_report {
  double loss = 0;       // mean over the micro-batches
  double grad_norm = 0;  // before clipping
  bool skipped = false;  // loss or norm was not finite: nothing was updated, or only a part (update_policy::within_backward)
};

}  // namespace isotope
