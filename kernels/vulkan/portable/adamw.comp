#version 460
#extension GL_GOOGLE_include_directive : require
// AdamW in place, four elements per invocation. Bound by bytes: 28 per element, and those of the bf16 shadow.
#include "access.glsl"
#include "rows/flat.glsl"
#include "reference/optimizer.glsl"

layout(push_constant, scalar) uniform push { optimizer_operands o; };

void main() {
  const uint i = item_index();
  if (4 * i >= o.count || skipped(o)) return;
  const vec4 w = load_flat(o.w, i, o.count, W), m = load_flat(o.m, i, o.count, F32), v = load_flat(o.v, i, o.count, F32);
  const vec4 g = gradient_factor(o) * load_flat(o.g, i, o.count, F32);
  scalars_ref s = scalars_ref(o.scalars);
  const float rate = s.learning_rate * o.rate;
  const vec4 decay = mix(vec4(0.0), vec4(rate * s.weight_decay), lessThan(4 * i + uvec4(0, 1, 2, 3), uvec4(o.decaying)));
  const vec4 m1 = s.beta1 * m + s.rest1 * g, v1 = s.beta2 * v + s.rest2 * (g * g);
  const vec4 w1 = (w - decay * w) - rate * ((m1 / s.correction1) / (sqrt(v1 / s.correction2) + s.epsilon));
  store_flat(o.m, i, o.count, F32, m1);
  store_flat(o.v, i, o.count, F32, v1);
  store_flat(o.w, i, o.count, W, w1);
  if (SHADOW) store_flat(o.shadow, i, o.count, SHADOW_TYPE, w1);
}
