// What adamw and sgd share: the factor on the gradient, and whether the step counts.
layout(constant_id = 2) const uint W = F32;
layout(constant_id = 3) const uint SHADOW_TYPE = F32;
layout(constant_id = 4) const bool SHADOW = false;
layout(constant_id = 5) const bool CLIP = false;  // clips by the global norm

struct optimizer_operands {
  uint64_t w, m, v, shadow, g;    // (count); all but w and shadow f32
  uint64_t norm, loss;            // () f32
  uint64_t scalars;
  uint count, decaying;           // the first elements decay
  float rate;                     // factor on the learning rate
};
bool skipped(optimizer_operands o) { return !is_finite(f32_ref(o.norm).at[0]) || !is_finite(f32_ref(o.loss).at[0]); }
float gradient_factor(optimizer_operands o) {
  const float scale = scalars_ref(o.scalars).gradient_scale, clip = scalars_ref(o.scalars).clip_norm;
  if (!CLIP || !(clip > 0.0)) return scale;
  const float ratio = clip / (f32_ref(o.norm).at[0] + 1e-6);
  return ratio < 1.0 ? scale * ratio : scale;
}
