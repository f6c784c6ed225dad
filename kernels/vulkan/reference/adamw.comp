#version 460
#extension GL_GOOGLE_include_directive : require
// AdamW, one element per invocation, in place. Bound by bytes.
#include "access.glsl"
#include "optimizer.glsl"

layout(push_constant, scalar) uniform push { optimizer_operands o; };

void main() {
  const uint i = item_index();
  if (i >= o.count || skipped(o)) return;
  scalars_ref s = scalars_ref(o.scalars);
  const float rate = s.learning_rate * o.rate;
  const float g = gradient_factor(o) * f32_ref(o.g).at[i];
  const float m = s.beta1 * f32_ref(o.m).at[i] + s.rest1 * g;
  const float v = s.beta2 * f32_ref(o.v).at[i] + s.rest2 * (g * g);
  const float w = load(o.w, i, W), kept = i < o.decaying ? w - rate * s.weight_decay * w : w;
  const float moved = kept - rate * ((m / s.correction1) / (sqrt(v / s.correction2) + s.epsilon));
  f32_ref(o.m).at[i] = m;
  f32_ref(o.v).at[i] = v;
  store(o.w, i, W, moved);
  if (SHADOW) store(o.shadow, i, SHADOW_TYPE, moved);
}
