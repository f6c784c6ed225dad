#version 460
#extension GL_GOOGLE_include_directive : require
// SGD with momentum in place, four elements per invocation. Bound by bytes: 20 per element, and those of the bf16 shadow.
#include "access.glsl"
#include "rows/flat.glsl"
#include "reference/optimizer.glsl"

layout(push_constant, scalar) uniform push { optimizer_operands o; };

void main() {
  const uint i = item_index();
  if (4 * i >= o.count || skipped(o)) return;
  const vec4 w = load_flat(o.w, i, o.count, W), m = load_flat(o.m, i, o.count, F32), g = load_flat(o.g, i, o.count, F32);
  scalars_ref s = scalars_ref(o.scalars);
  const vec4 decay = mix(vec4(0.0), vec4(s.weight_decay), lessThan(4 * i + uvec4(0, 1, 2, 3), uvec4(o.decaying)));
  const vec4 m1 = s.momentum * m + gradient_factor(o) * g + decay * w, w1 = w - s.learning_rate * o.rate * m1;
  store_flat(o.m, i, o.count, F32, m1);
  store_flat(o.w, i, o.count, W, w1);
  if (SHADOW) store_flat(o.shadow, i, o.count, SHADOW_TYPE, w1);
}
