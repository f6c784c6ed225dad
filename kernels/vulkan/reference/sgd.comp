#version 460
#extension GL_GOOGLE_include_directive : require
// SGD with momentum, one element per invocation, in place. Bound by bytes.
#include "access.glsl"
#include "optimizer.glsl"

layout(push_constant, scalar) uniform push { optimizer_operands o; };

void main() {
  const uint i = item_index();
  if (i >= o.count || skipped(o)) return;
  scalars_ref s = scalars_ref(o.scalars);
  const float w = load(o.w, i, W);
  const float pushed = s.momentum * f32_ref(o.m).at[i] + gradient_factor(o) * f32_ref(o.g).at[i];
  const float m = i < o.decaying ? pushed + s.weight_decay * w : pushed;
  const float moved = w - s.learning_rate * o.rate * m;
  f32_ref(o.m).at[i] = m;
  store(o.w, i, W, moved);
  if (SHADOW) store(o.shadow, i, SHADOW_TYPE, moved);
}
